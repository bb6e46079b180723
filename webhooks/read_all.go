// Reads all wearable data of a user.

package webhooks

// Source of this file: public API reference only.

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	labhealth "github.com/labhealth/labhealth-go"
)

// ReadAllParams selects the data that [ReadAll] reads.
type ReadAllParams struct {
	StartDate time.Time // start of the period of the data; required
	EndDate   time.Time // end of the period; zero for now
	Provider  string    // slug of one provider; empty for all
}

// menstrualCycleDays is how long before the period a menstrual cycle can start that changed in it.
const menstrualCycleDays = 90

// maxOthers is the number of resources that the package does not know, and of providers, up to
// which they are read, and maxListedUsers the number of users in which the resources of one are
// looked for.
const (
	maxOthers      = 50
	maxListedUsers = 1000
)

const (
	errManyOthers = permanentError("webhooks: the service lists more than 50 providers or unknown resources of a user, of which 50 were read")
	errManyUsers  = permanentError("webhooks: the service lists more than 1000 users in place of one, so its unknown resources were not read")
)

const errNoStartDate = permanentError("webhooks: ReadAll needs a StartDate")

// ReadAll reads all wearable data of a user in a period and returns an iterator over it, as the
// events of [ReadSummaries] and [ReadSamples]. What these say of ReceivedAt, of periods and of the
// iterator holds here too. ReadAll reads from the day before StartDate to the day after EndDate,
// because summaries have local dates, and some sources label local time as UTC. It reads menstrual
// cycles from 90 days earlier, because they change for weeks.
//
// It reads the resource of every type of daily.data events in the order of the constants of
// [EventType], and then by name those that the package does not know but Users.Resources reports. A
// profile is read for each provider of Users.ConnectedProviders and Users.Resources, and once
// without a provider. If there are more than 50 providers, or unknown resources, 50 are read, and
// an error follows the last event. The same data may occur twice. Types without a list are not
// read: the streams of workouts and sleeps are read by the ID of the summary.
//
// A resource is without data if the service says so with an error that matches
// [labhealth.ErrNotFound]: see [labhealth.APIError.FromService]. The error for an unknown user, or
// one that was deleted meanwhile, matches it too and is returned. Another error ends the list of
// one resource: a loop that goes on gets the others.
//
// A user with one provider takes 62 requests, and one more if anything was not found. Each further
// provider takes one, each further half year 7, and each further page of samples one.
func ReadAll(ctx context.Context, client *labhealth.Client, userID uuid.UUID, params ReadAllParams, opts ...labhealth.CallOption) iter.Seq2[*Event, error] {
	client = orZero(client)
	return func(yield func(*Event, error) bool) {
		lists, err := allLists(ctx, client, userID, params, opts)
		if err != nil {
			yield(nil, err)
			return
		}
		isMissing := false
		for _, list := range lists {
			isEmpty := true
			for event, err := range list {
				if isEmpty && isNotFound(err) {
					isMissing = true
					break
				}
				if !yield(event, err) {
					return
				}
				isEmpty = false
			}
		}
		if isMissing {
			if _, err := client.Users.Get(ctx, userID, opts...); err != nil {
				yield(nil, err)
			}
		}
	}
}

// allLists returns the lists of all resources of a user.
func allLists(ctx context.Context, client *labhealth.Client, userID uuid.UUID, params ReadAllParams, opts []labhealth.CallOption) (lists []iter.Seq2[*Event, error], err error) {
	if params.StartDate.IsZero() {
		return nil, errNoStartDate
	}
	providers, others, limit := providersAndResources(ctx, client, userID, params.Provider, opts)
	isLimited := errors.Is(limit, errManyOthers) || errors.Is(limit, errManyUsers)
	if limit != nil && !isLimited {
		return nil, limit
	}
	start, end := params.StartDate.UTC().AddDate(0, 0, -1), params.EndDate.UTC().AddDate(0, 0, 1)
	if params.EndDate.IsZero() {
		end = time.Now().UTC().AddDate(0, 0, 1)
	}
	samples := labhealth.ListSamplesParams{StartDate: start, EndDate: end, Provider: params.Provider}
	summaries := labhealth.ListSummariesParams{StartDate: labhealth.DateOf(start), EndDate: labhealth.DateOf(end), Provider: params.Provider}
	addSummaries := func(resource string, params labhealth.ListSummariesParams) {
		lists = append(lists, ReadSummaries(ctx, client, userID, labhealth.SummaryResource(resource), params, opts...))
	}
	addSamples := func(resource string) {
		lists = append(lists, ReadSamples(ctx, client, userID, labhealth.SampleResource(resource), samples, opts...))
	}
	for resource, isSummary := range dailyResources() {
		switch {
		case resource == string(labhealth.SummaryProfile):
			for _, provider := range providers {
				addSummaries(resource, labhealth.ListSummariesParams{Provider: provider})
			}
		case resource == string(labhealth.SummaryMenstrualCycle):
			earlier := summaries
			earlier.StartDate = addDays(summaries.StartDate, -menstrualCycleDays)
			addSummaries(resource, earlier)
		case isSummary:
			addSummaries(resource, summaries)
		default:
			addSamples(resource)
		}
	}
	for _, resource := range others { // one of the two is not found
		addSummaries(resource, summaries)
		addSamples(resource)
	}
	if isLimited {
		lists = append(lists, func(yield func(*Event, error) bool) { yield(nil, limit) })
	}
	return lists, nil
}

// isNotFound reports whether the service says that there is no data. A proxy that says so knows
// nothing of it.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*labhealth.APIError](err)
	return ok && errors.Is(err, labhealth.ErrNotFound) && e.FromService()
}

// withoutList are the resources of Users.Resources and of events that no list has.
var withoutList = []labhealth.Resource{
	labhealth.ResourceAppointment, labhealth.ResourceConnection, labhealth.ResourceDevice, labhealth.ResourceDeviceLegacy,
	labhealth.ResourceHypnogram, labhealth.ResourceMatchReview, labhealth.ResourceOrder, labhealth.ResourceResult,
	labhealth.ResourceResultTable, labhealth.ResourceSleepStream, labhealth.ResourceWorkoutStream,
}

// dailyResources returns an iterator over the resources that have lists, by their names in events.
func dailyResources() iter.Seq2[string, bool] {
	return func(yield func(resource string, isSummary bool) bool) {
		for _, t := range constants {
			resource := t.Resource()
			if t != EventType(dailyPrefix+resource+".updated") || slices.Contains(withoutList, labhealth.Resource(resource)) {
				continue
			}
			if !yield(resource, payloadTypeOf(t) != payloadTypes[dailyPrefix]) {
				return
			}
		}
	}
}

// providersAndResources returns the providers whose profiles are read, and the resources that are
// not in dailyResources. With errManyOthers and errManyUsers, it returns some of them.
func providersAndResources(ctx context.Context, client *labhealth.Client, userID uuid.UUID, provider string, opts []labhealth.CallOption) (providers, others []string, err error) {
	slugs, names := map[string]bool{"": true}, map[string]bool{}
	connected, err := client.Users.ConnectedProviders(ctx, userID, opts...)
	if err != nil {
		return nil, nil, err
	}
	for _, list := range connected {
		for _, c := range list {
			slugs[c.Slug] = true
		}
	}
	users, limit := userResources(ctx, client, userID, opts)
	if limit != nil && !errors.Is(limit, errManyUsers) {
		return nil, nil, limit
	}
	for _, user := range users {
		for slug, resources := range user.Provider {
			slugs[slug] = true
			if provider != "" && slug != provider {
				continue
			}
			for name := range resources {
				names[name] = true
			}
		}
	}
	if provider != "" {
		slugs = map[string]bool{provider: true}
	}
	deleteKnown(names)
	providers, others = slices.Sorted(maps.Keys(slugs)), slices.Sorted(maps.Keys(names))
	if len(providers) > maxOthers || len(others) > maxOthers {
		limit = errManyOthers
	}
	return providers[:min(len(providers), maxOthers)], others[:min(len(others), maxOthers)], limit
}

// deleteKnown deletes what is in dailyResources, and names that cannot be those of lists.
func deleteKnown(names map[string]bool) {
	for resource := range dailyResources() {
		delete(names, resource)
		api, _ := namesOf(labhealth.SampleResource(resource))
		delete(names, string(api))
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool {
		return !isResourceName(name) || slices.Contains(withoutList, labhealth.Resource(name))
	})
}

// userResources returns what Users.Resources has of a user. With errManyUsers, there may be more:
// the service ignores the parameter.
func userResources(ctx context.Context, client *labhealth.Client, userID uuid.UUID, opts []labhealth.CallOption) (users []*labhealth.UserResources, err error) {
	listed := 0
	for user, err := range client.Users.AllResources(ctx, labhealth.ListUserResourcesParams{UserID: userID}, opts...) {
		if isNotFound(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		if listed++; listed > maxListedUsers {
			return users, errManyUsers
		}
		if user.UserID == userID {
			users = append(users, user)
		}
	}
	return users, nil
}

// isResourceName reports whether name can be a resource in a path and in an event type.
func isResourceName(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}
