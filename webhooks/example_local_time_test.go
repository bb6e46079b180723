package webhooks_test

import (
	"fmt"
	"log"
	"maps"
	"slices"
	"strings"

	labhealth "github.com/labhealth/labhealth-go"
	"github.com/labhealth/labhealth-go/webhooks"
)

// glucoseOf is an event with samples at these times, of 5, 6, 7 … mmol/L.
func glucoseOf(provider, offset string, times ...string) []byte {
	var samples []string
	for i, at := range times {
		samples = append(samples, fmt.Sprintf(`{"timestamp":%q,"timezone_offset":%s,"value":%d,"unit":"mmol/L"}`, at, offset, 5+i))
	}
	return fmt.Appendf(nil, `{"event_type":"daily.data.glucose.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4",
		"data":{"source":{"provider":%q,"type":"automatic"},"data":[%s]}}`, provider, strings.Join(samples, ","))
}

// The mean glucose of each day of the user. Of freestyle_libre, the timestamps are the clock of the
// user, although they are labeled as UTC.
func ExampleSamples_LocalTime() {
	sum, count := map[labhealth.Date]float64{}, map[labhealth.Date]float64{}
	for _, body := range [][]byte{
		glucoseOf("dexcom_v3", "-28800", "2025-03-02T07:00:00Z", "2025-03-02T09:00:00Z"), // 23:00 and 01:00 in California
		glucoseOf("freestyle_libre", "0", "2025-03-01T23:30:00+00:00", "2025-03-02T01:00:00+00:00"),
	} {
		event, err := webhooks.Parse(body)
		if err != nil {
			log.Fatal(err)
		}
		samples := event.Data.(*webhooks.Samples)
		for i := range samples.Data {
			at, ok := samples.LocalTime(&samples.Data[i])
			if !ok {
				continue // use the time zone of the user
			}
			day := labhealth.DateOf(at)
			sum[day] += samples.Data[i].Value
			count[day]++
		}
	}
	for _, day := range slices.SortedFunc(maps.Keys(sum), labhealth.Date.Compare) {
		fmt.Printf("%v %.1f\n", day, sum[day]/count[day])
	}
	// Output:
	// 2025-03-01 5.0
	// 2025-03-02 6.0
}

// A phone and a watch of one provider count the same steps. Of each day, only the samples of the
// device with the highest priority count, which the type of the source tells. Of several providers,
// choose one first; a [webhooks.Latest] or a store drops what is delivered twice.
func ExampleSource_steps() {
	priority := []webhooks.SourceType{webhooks.SourceTypeWatch, webhooks.SourceTypePhone}
	steps := map[labhealth.Date]map[webhooks.SourceType]float64{}
	for _, body := range []string{
		stepsOf("phone", "2025-03-01T09:00:00Z", 900) + "\n" + stepsOf("watch", "2025-03-01T09:05:00Z", 1000),
		stepsOf("phone", "2025-03-02T09:00:00Z", 400), // the watch was charging
	} {
		for line := range strings.Lines(body) {
			event, err := webhooks.Parse([]byte(line))
			if err != nil {
				log.Fatal(err)
			}
			samples := event.Data.(*webhooks.Samples)
			for i := range samples.Data {
				at, ok := samples.LocalTime(&samples.Data[i])
				if !ok {
					continue // the user's clock is unknown
				}
				day := labhealth.DateOf(at)
				if steps[day] == nil {
					steps[day] = map[webhooks.SourceType]float64{}
				}
				steps[day][samples.Source.Type] += samples.Data[i].Value
			}
		}
	}
	for _, day := range slices.SortedFunc(maps.Keys(steps), labhealth.Date.Compare) {
		for _, device := range priority {
			if n, ok := steps[day][device]; ok {
				fmt.Println(day, n, device)
				break
			}
		}
	}
	// Output:
	// 2025-03-01 1000 watch
	// 2025-03-02 400 phone
}

func stepsOf(sourceType, at string, steps int) string {
	return fmt.Sprintf(`{"event_type":"daily.data.steps.created","user_id":"0b8f3a1e-6d57-4c7e-8f43-2a9d51c0e7b4","data":{"source":`+
		`{"provider":"apple_health_kit","type":%q},"data":[{"timestamp":%q,"timezone_offset":0,"value":%d,"unit":"count"}]}}`, sourceType, at, steps)
}
