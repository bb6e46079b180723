// The times that can be booked, and their booking keys.

package labhealthtest

import (
	"cmp"
	"net/http"
	"slices"
	"time"
)

// slotID identifies an hour of a phlebotomist or a site. It can be booked once.
type slotID struct {
	kind  string
	place string // prefix of the area, or code of the site
	start int64  // Unix time
}

// offer is what a booking key stands for.
type offer struct {
	slot      slotID
	kind      *appointmentKind
	site      *site     // nil for an appointment at home
	area      *area     // area of the appointment
	address   usAddress // where the sample is collected
	start     time.Time
	expiresAt time.Time
}

const (
	// offerPeriod is how long a booking key is valid.
	offerPeriod = 15 * time.Minute
	// offeredDays is the number of days whose slots are offered.
	offeredDays = 7
)

// slotHours are the hours, in UTC, at which appointments start on each day: in the morning in all
// areas.
var slotHours = []time.Duration{16, 17, 18, 19}

type availability struct {
	Slots    []daySlots `json:"slots"`
	Timezone *string    `json:"timezone"`
}

type daySlots struct {
	Location *slotLocation `json:"location"`
	Date     string        `json:"date"`
	Slots    []timeSlot    `json:"slots"`
}

type slotLocation struct {
	Location     lngLat    `json:"location"`
	Distance     *int      `json:"distance"`
	Address      usAddress `json:"address"`
	Code         string    `json:"code"`
	Name         string    `json:"name"`
	IANATimezone *string   `json:"iana_timezone"`
}

type timeSlot struct {
	BookingKey *string    `json:"booking_key"`
	Start      timestamp  `json:"start"`
	End        timestamp  `json:"end"`
	ExpiresAt  *timestamp `json:"expires_at"`
	Price      float64    `json:"price"`
	IsPriority bool       `json:"is_priority"`
	Available  int        `json:"num_appointments_available"`
}

// offerDays returns the slots of a place from a first day on, or from the current day if that is
// later. Slots that are taken have no booking key, past ones are left out.
func (s *Server) offerDays(place offer, first string, now time.Time) []daySlots {
	day := now.Truncate(24 * time.Hour)
	if t, err := time.Parse(time.DateOnly, first); err == nil && t.After(day) {
		day = t
	}
	var days []daySlots
	for range offeredDays {
		d := daySlots{Date: day.Format(time.DateOnly), Slots: []timeSlot{}}
		for _, hour := range slotHours {
			place.start = day.Add(hour * time.Hour)
			if place.start.After(now) {
				d.Slots = append(d.Slots, s.offerSlot(place, now))
			}
		}
		days = append(days, d)
		day = day.AddDate(0, 0, 1)
	}
	return days
}

func (s *Server) offerSlot(o offer, now time.Time) timeSlot {
	slot := timeSlot{Start: timestamp(o.start), End: timestamp(o.start.Add(time.Hour)), Price: o.kind.price}
	o.slot.start = o.start.Unix()
	if s.takenSlots[o.slot] {
		return slot
	}
	o.expiresAt = now.Add(offerPeriod)
	key := "bk_" + s.newID().String()
	s.offers[key] = o
	slot.BookingKey, slot.ExpiresAt, slot.Available = &key, new(timestamp(o.expiresAt)), 1
	return slot
}

// dropExpiredOffers keeps the number of booking keys small.
func (s *Server) dropExpiredOffers(now time.Time) {
	for key, o := range s.offers {
		if !now.Before(o.expiresAt) {
			delete(s.offers, key)
		}
	}
}

// offerAtHome returns the slots of the booked provider at an address.
func (s *Server) offerAtHome(r *request) (any, error) {
	first := r.queryOne("start_date")
	var address usAddress
	r.decode(&address)
	s.dropExpiredOffers(r.now)
	result := availability{Slots: []daySlots{}}
	if a := areaOf(address.ZipCode); a != nil {
		result.Slots = s.offerDays(offer{slot: slotID{kind: atHome.name, place: a.prefix}, kind: atHome, area: a, address: address}, first, r.now)
		result.Timezone = &a.timezone
	}
	return result, nil
}

// offerWalkIn returns the slots of the sites of a lab with the requested codes, or of those near a
// ZIP code.
func (s *Server) offerWalkIn(r *request) (any, error) {
	slug := r.queryOne("lab")
	first := r.queryOne("start_date")
	codes := r.queryList("site_codes")
	zip, radius := r.queryOne("zip_code"), r.queryInt("radius")
	if zip == "" && len(codes) == 0 {
		return nil, reject(http.StatusBadRequest, "zip_code or site_codes is required")
	}
	s.dropExpiredOffers(r.now)
	result := availability{Slots: []daySlots{}}
	for _, site := range sites {
		near := zip == "" || site.area == areaOf(zip) && site.distance(zip) <= radius
		asked := len(codes) == 0 || slices.Contains(codes, site.code)
		if site.lab.slug != slug || !near || !asked || !slices.Contains(site.capabilities, "appointment_scheduling_with_lab") {
			continue
		}
		days := s.offerDays(offer{
			slot: slotID{kind: walkIn.name, place: site.code}, kind: walkIn, site: site, area: site.area, address: site.address(),
		}, first, r.now)
		for i := range days {
			days[i].Location = site.slotLocation(zip)
		}
		result.Slots = append(result.Slots, days...)
	}
	slices.SortStableFunc(result.Slots, func(a, b daySlots) int { return cmp.Compare(a.Date, b.Date) })
	return result, nil
}

func (s *site) slotLocation(zip string) *slotLocation {
	l := &slotLocation{Location: s.area.location, Address: s.address(), Code: s.code, Name: s.name, IANATimezone: &s.area.timezone}
	if zip != "" {
		l.Distance = new(s.distance(zip))
	}
	return l
}
