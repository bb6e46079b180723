package webhooks_test

import (
	"fmt"
	"log"

	"github.com/labhealth/labhealth-go/webhooks"
)

// One type switch is all that most receivers need. It has no case for what the program does not
// use.
func ExampleParse() {
	for _, body := range []string{
		`{"event_type":"daily.data.glucose.created","data":{"source":{"name":"Example Sensor","slug":"example_sensor","logo":""},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5.4}]}}`,
		`{"event_type":"daily.data.glucose.updated","data":{"source":{"provider":"example_sensor","type":"automatic"},"data":[{"timestamp":"2025-03-01T12:00:00Z","unit":"mmol/L","value":5.5}]}}`,
		`{"event_type":"daily.data.activity.updated","data":{"source":{"slug":"example_ring"},"id":"3c1f8f43-0d1c-4f55-9a0b-2f1f6f0b7c11","calendar_date":"2025-03-01","steps":10482}}`,
		`{"event_type":"provider.connection.created","client_user_id":"user-1","data":{"source":{"name":"Example Ring","slug":"example_ring","logo":""}}}`,
		`{"event_type":"labtest.order.updated","data":{"id":"c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5","last_event":{"id":2,"status":"completed.testkit.completed"}}}`,
		`{"event_type":"moon.phase.changed","data":{"phase":"full"}}`,
	} {
		event, err := webhooks.Parse([]byte(body))
		if err != nil {
			log.Fatal(err) // not a JSON object: no version of this package will ever read it
		}
		fmt.Println(describe(event))
	}
	// Output:
	// 1 glucose from example_sensor
	// 1 glucose from example_sensor
	// activity on 2025-03-01 from example_ring
	// user-1 connected example_ring
	// order c4e1b2a3-9f80-4d76-b5c4-a3928170f6e5 is completed.testkit.completed
	// moon.phase.changed is ignored
}

// describe stands for what a receiver does with an event.
func describe(event *webhooks.Event) string {
	switch data := event.Data.(type) {
	case *webhooks.Samples:
		return fmt.Sprint(len(data.Data), " ", event.Type.Resource(), " from ", data.Source.ProviderSlug())
	case *webhooks.Activity:
		return fmt.Sprint("activity on ", data.CalendarDate, " from ", data.Source.ProviderSlug())
	case *webhooks.ProviderConnection:
		return fmt.Sprint(event.ClientUserID, " connected ", data.ConnectedProvider().ProviderSlug())
	case *webhooks.LabOrder:
		return fmt.Sprint("order ", data.ID, " is ", data.CurrentStatus())
	default:
		return fmt.Sprint(event.Type, " is ignored")
	}
}
