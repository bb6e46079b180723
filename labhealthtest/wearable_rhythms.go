// How samples vary over the days of a person.

package labhealthtest

import (
	"hash/fnv"
	"math"
	"time"
)

// The rhythms make invented samples look like days of a person: rest at night, meals, walks, and
// exercise on some days. They depend on the user and the time, so that the samples of several
// events continue each other.

// noise returns a number from 0 to 1, the same for the same arguments.
func noise(person uint64, n int64, name string) float64 {
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(person>>(8*i)), byte(uint64(n)>>(8*i)) //nolint:gosec // any bits will do
	}
	h.Write(b[:])
	h.Write([]byte(name))
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// noiseOf returns a number from 0 to 1 for one sample.
func (c sampleContext) noiseOf(name string) float64 {
	return noise(c.person, c.at.Unix(), name)
}

// hour returns the local hour of the sample, 0 to 24.
func (c sampleContext) hour() float64 {
	local := c.at.Add(time.Hour) // the offset of the samples
	return float64(local.Hour()) + float64(local.Minute())/60
}

// ofDay returns a number from 0 to 1 that is the same for the whole local day.
func (c sampleContext) ofDay(name string) float64 {
	return noise(c.person, c.at.Add(time.Hour).Unix()/86400, name)
}

// bump rises to 1 around an hour and falls on both sides.
func bump(hour, at, width float64) float64 {
	x := (hour - at) / width
	return math.Exp(-x * x)
}

// awake is 0 at night and 1 by day.
func awake(hour float64) float64 {
	return 1 / (1 + math.Exp(-(hour-7)*3)) / (1 + math.Exp((hour-23)*3))
}

// exercise is above 0 during the exercise of the day, if there is any.
func (c sampleContext) exercise() float64 {
	if c.ofDay("exercise") < 0.45 {
		return 0
	}
	return bump(c.hour(), 17.5+2*c.ofDay("exercise at"), 0.4)
}

// walks is above 0 during the walks of the day.
func (c sampleContext) walks() float64 {
	h := c.hour()
	return max(bump(h, 8.2+0.4*c.ofDay("morning"), 0.22), 0.7*bump(h, 12.6+0.8*c.ofDay("noon"), 0.2), 0.9*bump(h, 16.8+c.ofDay("evening"), 0.25),
		0.8*c.exercise())
}

func heartRhythm(c sampleContext) float64 {
	h := c.hour()
	rest := 0.05 + 0.05*math.Sin((h-3)/24*2*math.Pi) + 0.06*c.ofDay("rest")
	return rest + awake(h)*(0.18+0.08*math.Sin(h*1.7+6*c.ofDay("phase"))) + 0.22*c.walks() + 0.5*c.exercise() + 0.08*(c.noiseOf("heart")-0.5)
}

func glucoseRhythm(c sampleContext) float64 {
	h := c.hour()
	level := 0.17 + 0.05*math.Sin((h-4)/24*2*math.Pi)
	for i, meal := range []float64{7.4, 12.9, 19.1} {
		name := []string{"breakfast", "lunch", "dinner"}[i]
		// Glucose rises within an hour and falls within three.
		if x := h - meal - 0.5*c.ofDay(name); x > 0 {
			level += (0.25 + 0.4*c.ofDay(name+" size")) * x / 0.75 * math.Exp(1-x/0.75)
		}
	}
	return level - 0.08*c.exercise() + 0.03*(c.noiseOf("glucose")-0.5)
}

func walkingRhythm(c sampleContext) float64 {
	still := 0.0
	if awake(c.hour()) > 0.5 && c.noiseOf("moves") > 0.6 {
		still = 0.1 * c.noiseOf("steps")
	}
	if walks := c.walks(); walks > 0.15 {
		return still + walks*(0.7+0.3*c.noiseOf("pace"))
	}
	return still
}
