// The metric of delivered events.

package management

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const opGetEventDeliveryMetric = "GET /v1/org/{org_id}/team/{team_id}/{environment}/event_delivery_metric"

// MetricInterval is the distance of the samples of a metric. Values other than the constants occur.
type MetricInterval string

// Values of [MetricInterval].
const (
	MetricInterval5Minutes  MetricInterval = "5m"
	MetricInterval15Minutes MetricInterval = "15m"
	MetricInterval1Hour     MetricInterval = "1h"
	MetricInterval1Day      MetricInterval = "1d"
)

// EventDeliveryMetricParams are the parameters of [WebhooksService.EventDeliveryMetric].
type EventDeliveryMetricParams struct {
	// Interval is the distance of the samples. If it is empty, the service uses one hour.
	Interval MetricInterval
}

func (p EventDeliveryMetricParams) query() url.Values {
	return url.Values{"interval": optional(p.Interval)}
}

// PrometheusQueryResponse is a metric in the format of Prometheus: the response of
// [WebhooksService.EventDeliveryMetric].
type PrometheusQueryResponse struct {
	Status string              `json:"status"` // always "success"
	Data   PrometheusQueryData `json:"data"`   // the series of the metric

	labhealth.RawObject `json:"-"`
}

func (r *PrometheusQueryResponse) verify() error { return requireList(r.Data.Result) }

// PrometheusQueryData holds the series of a metric.
type PrometheusQueryData struct {
	ResultType string                  `json:"resultType"` // always "matrix"
	Result     []PrometheusQueryResult `json:"result"`     // one element for each set of labels

	labhealth.RawObject `json:"-"`
}

// PrometheusQueryResult is one series of a metric. Read it with [PrometheusQueryResult.Samples].
type PrometheusQueryResult struct {
	Metric map[string]string `json:"metric"` // the labels of the series
	// Values holds the samples. Each is a Unix time in seconds and a number as a string; this
	// format is an inference.
	Values [][]json.RawMessage `json:"values"`

	labhealth.RawObject `json:"-"`
}

// Samples returns an iterator over the times and numbers of Values. It skips values of any other
// form.
func (r PrometheusQueryResult) Samples() iter.Seq2[time.Time, float64] {
	return func(yield func(time.Time, float64) bool) {
		for _, pair := range r.Values {
			at, number, ok := prometheusSample(pair)
			if ok && !yield(at, number) {
				return
			}
		}
	}
}

func prometheusSample(pair []json.RawMessage) (at time.Time, number float64, ok bool) {
	if len(pair) != 2 {
		return at, 0, false
	}
	var seconds float64
	var text string
	if json.Unmarshal(pair[0], &seconds) != nil || json.Unmarshal(pair[1], &text) != nil {
		return at, 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return time.UnixMilli(int64(math.Round(seconds * 1000))).UTC(), number, err == nil
}

// EventDeliveryMetric returns how many events were delivered, as a metric over time:
// GET /v1/org/{org_id}/team/{team_id}/{environment}/event_delivery_metric. The labels of its series
// are not documented.
func (s *WebhooksService) EventDeliveryMetric(ctx context.Context, teamID uuid.UUID, env labhealth.TeamEnvironment, params EventDeliveryMetricParams, opts ...labhealth.CallOption) (*PrometheusQueryResponse, error) {
	r := request{Op: opGetEventDeliveryMetric, IDs: []string{teamID.String(), string(env)}, Params: params}
	return call(ctx, coreOf(s), new(PrometheusQueryResponse), r, opts)
}
