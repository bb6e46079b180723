// The metric of delivered events.

package labhealthtest

import (
	"strconv"
	"time"
)

// metricSamples is the number of intervals in a metric.
const metricSamples = 24

var (
	metricIntervals = map[string]time.Duration{"5m": 5 * time.Minute, "15m": 15 * time.Minute, "": time.Hour, "1h": time.Hour, "1d": 24 * time.Hour}
)

// metricSeries is a series of a metric in the format of Prometheus.
type metricSeries struct {
	Metric map[string]string `json:"metric"`
	Values [][2]any          `json:"values"`
}

// getDeliveryMetric counts the attempts to deliver the events of a team, in intervals that end now:
// one series for those that were acknowledged and one for those that were not. A series without
// attempts is left out. The labels of the service are not documented.
func (s *Server) getDeliveryMetric(r *request, t *team) (any, error) {
	interval := metricIntervals[r.queryOne("interval")]
	series := []metricSeries{}
	for _, status := range []string{"success", "failure"} {
		var counts [metricSamples]int
		total := 0
		if r.vars["environment"] == serverEnv && t.Region == serverRegion {
			s.withTeamServer(t, func(server *Server) { total = server.countDeliveries(status == "success", r.now, interval, &counts) })
		}
		if total > 0 {
			series = append(series, newMetricSeries(status, r.now, interval, counts))
		}
	}
	return map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": series}}, nil
}

// countDeliveries counts attempts by interval, the newest interval last, and returns their sum.
func (s *Server) countDeliveries(acknowledged bool, now time.Time, interval time.Duration, counts *[metricSamples]int) (total int) {
	for _, d := range s.deliveries {
		age := int(now.Sub(d.At) / interval)
		if d.acknowledged() == acknowledged && age >= 0 && age < metricSamples {
			counts[metricSamples-1-age]++
			total++
		}
	}
	return total
}

func newMetricSeries(status string, now time.Time, interval time.Duration, counts [metricSamples]int) metricSeries {
	m := metricSeries{Metric: map[string]string{"status": status}}
	for i, n := range counts {
		at := now.Add(-interval * time.Duration(metricSamples-1-i))
		m.Values = append(m.Values, [2]any{float64(at.UnixMilli()) / 1000, strconv.Itoa(n)})
	}
	return m
}
