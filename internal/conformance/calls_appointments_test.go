package conformance

import (
	"github.com/google/uuid"

	"github.com/labhealth/labhealth-go"
)

const (
	appointmentJSON = `{
		"id":"a0a0a0a0-0001-4000-8000-000000000001","user_id":"a0a0a0a0-0002-4000-8000-000000000002",
		"order_id":"a0a0a0a0-0003-4000-8000-000000000003","order_transaction_id":"a0a0a0a0-0004-4000-8000-000000000004",
		"address":{"first_line":"1 Main Street","second_line":"Unit 2","city":"San Francisco","state":"CA","zip_code":"94105-1234",
			"unit":"2","access_notes":"Ring twice"},
		"location":{"lng":-122.39,"lat":37.79},
		"start_at":"2030-05-02T16:00:00","end_at":"2030-05-02T17:00:00","iana_timezone":"America/Los_Angeles",
		"type":"phlebotomy","provider":"getlabs","status":"confirmed","provider_id":"APPT-1","external_id":"EXT-1",
		"can_reschedule":true,"appointment_notes":"Call first","event_status":"scheduled","event_data":{"origin":"team"},
		"events":[{"created_at":"2030-05-01T12:00:00.123456+00:00","status":"pending","data":null},
			{"created_at":"2030-05-01T12:00:05+00:00","status":"scheduled","data":{"origin":"team"}}]}`
	availabilityJSON = `{"slots":[{
		"location":{"location":{"lng":-97.74,"lat":30.27},"distance":1,
			"address":{"first_line":"10 Market Street","second_line":null,"city":"Austin","state":"TX","zip_code":"78705","unit":null,"access_notes":null},
			"code":"Q-787-1","name":"Austin Center","iana_timezone":"America/Chicago"},
		"date":"2030-05-02","slots":[{"booking_key":"bk_1","start":"2030-05-02T16:00:00+00:00","end":"2030-05-02T17:00:00+00:00",
			"expires_at":"2030-05-01T12:15:00+00:00","price":79.50,"is_priority":false,"num_appointments_available":2}]},
		{"location":null,"date":"2030-05-03","slots":[{"booking_key":null,"start":"2030-05-03T16:00:00+00:00",
			"end":"2030-05-03T17:00:00+00:00","expires_at":null,"price":0,"is_priority":true,"num_appointments_available":0}]}],
		"timezone":"America/Chicago"}`
	reasonsJSON = `[{"id":"a0a0a0a0-0005-4000-8000-000000000005","name":"The patient is not available","is_refundable":true}]`
	areaJSON    = `{"zip_code":"94105",
		"phlebotomy":{"is_served":true,"providers":[{"name":"getlabs","service_types":["appointment-ready","appointment-request"]}]},
		"central_labs":{"quest":{"patient_service_centers":{"within_radius":2,"radius":"25","capabilities":["stat","appointment_scheduling_with_lab"]},
			"supported_bill_types":["client_bill","patient_bill"],"lab_id":27}}}`
	sitesJSON = `{"lab_id":27,"slug":"quest","patient_service_centers":[{
		"metadata":{"name":"Austin Center","state":"TX","city":"Austin","zip_code":"78705","first_line":"10 Market Street","second_line":"Floor 2",
			"phone_number":"+14155550160","fax_number":"+14155550161","hours":{"monday":"07:00-16:00"},"website":"https://example.com/austin"},
		"distance":1,"site_code":"Q-787-1","supported_bill_types":["client_bill"],"location":{"lng":-97.74,"lat":30.27},"capabilities":["stat"]}]}`
)

var (
	appointmentOrder  = uuid.MustParse("a0a0a0a0-0003-4000-8000-000000000003")
	appointmentReason = uuid.MustParse("a0a0a0a0-0005-4000-8000-000000000005")
	appointmentHome   = labhealth.USAddress{
		FirstLine: "1 Main Street", SecondLine: new("Unit 2"), City: "San Francisco", State: "CA", ZipCode: "94105-1234",
		AccessNotes: new("Ring twice"),
	}
)

const appointmentHomeJSON = `{"first_line":"1 Main Street","second_line":"Unit 2","city":"San Francisco","state":"CA",` +
	`"zip_code":"94105-1234","access_notes":"Ring twice"}`

var appointmentCalls = []apiCall{
	{
		method: "Appointments.Area", op: "GET /v3/order/area/info",
		url: "/v3/order/area/info?lab=quest&lab_account_id=a0a0a0a0-0006-4000-8000-000000000006&labs=quest&labs=sonora_quest&" +
			"radius=50&zip_code=94105",
		response: areaJSON,
		args: []any{labhealth.AreaParams{
			ZipCode: "94105", Radius: 50, Lab: labhealth.PSCLabQuest, Labs: []labhealth.PSCLab{labhealth.PSCLabQuest, labhealth.PSCLabSonoraQuest},
			LabAccountID: uuid.MustParse("a0a0a0a0-0006-4000-8000-000000000006"),
		}},
	},
	{
		method: "Appointments.Sites", op: "GET /v3/order/psc/info",
		url: "/v3/order/psc/info?capabilities=stat&capabilities=appointment_scheduling_with_lab&lab_account_id=" +
			"a0a0a0a0-0006-4000-8000-000000000006&lab_id=27&radius=10&zip_code=78701",
		response: sitesJSON,
		args: []any{labhealth.SitesParams{
			ZipCode: "78701", LabID: 27, Radius: 10,
			Capabilities: []labhealth.LabLocationCapability{labhealth.LabLocationStat, labhealth.LabLocationScheduling},
			LabAccountID: uuid.MustParse("a0a0a0a0-0006-4000-8000-000000000006"),
		}},
	},
	{
		method: "Appointments.OrderSites", op: "GET /v3/order/{order_id}/psc/info",
		url:      "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/psc/info?capabilities=stat&radius=100",
		response: sitesJSON,
		args: []any{appointmentOrder, labhealth.OrderSitesParams{
			Radius: 100, Capabilities: []labhealth.LabLocationCapability{labhealth.LabLocationStat},
		}},
	},
	{
		method: "Appointments.AtHomeAvailability", op: "POST /v3/order/phlebotomy/appointment/availability",
		url:      "/v3/order/phlebotomy/appointment/availability?start_date=2030-05-02",
		body:     appointmentHomeJSON,
		response: availabilityJSON,
		args: []any{appointmentHome,
			labhealth.AtHomeAvailabilityParams{StartDate: labhealth.Date{Year: 2030, Month: 5, Day: 2}}},
	},
	{
		method: "Appointments.WalkInAvailability", op: "POST /v3/order/psc/appointment/availability",
		url: "/v3/order/psc/appointment/availability?allow_stale=true&lab=quest&radius=20&site_codes=Q-787-1&site_codes=Q-787-2&" +
			"start_date=2030-05-02&zip_code=78701",
		response: availabilityJSON,
		args: []any{labhealth.WalkInAvailabilityParams{
			Lab: labhealth.PSCLabQuest, StartDate: labhealth.Date{Year: 2030, Month: 5, Day: 2}, SiteCodes: []string{"Q-787-1", "Q-787-2"},
			ZipCode: "78701", Radius: 20, AllowStale: true,
		}},
	},
	{
		method: "Appointments.Request", op: "POST /v3/order/{order_id}/phlebotomy/appointment/request",
		url:      "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/phlebotomy/appointment/request",
		body:     `{"address":` + appointmentHomeJSON + `,"provider":"phlebfinders","appointment_notes":"Call first"}`,
		response: appointmentJSON,
		args: []any{appointmentOrder, labhealth.RequestAppointmentBody{
			Address: appointmentHome, Provider: labhealth.AppointmentProviderPhlebfinders, AppointmentNotes: new("Call first"),
		}},
	},
	bookCall(labhealth.AppointmentAtHome, "phlebotomy"), bookCall(labhealth.AppointmentWalkIn, "psc"),
	rescheduleCall(labhealth.AppointmentAtHome, "phlebotomy"), rescheduleCall(labhealth.AppointmentWalkIn, "psc"),
	cancelAppointmentCall(labhealth.AppointmentAtHome, "phlebotomy"), cancelAppointmentCall(labhealth.AppointmentWalkIn, "psc"),
	cancellationReasonsCall(labhealth.AppointmentAtHome, "phlebotomy"), cancellationReasonsCall(labhealth.AppointmentWalkIn, "psc"),
	getAppointmentCall(labhealth.AppointmentAtHome, "phlebotomy"), getAppointmentCall(labhealth.AppointmentWalkIn, "psc"),
}

func bookCall(kind labhealth.AppointmentType, segment string) apiCall {
	return apiCall{
		method: "Appointments.Book", op: "POST /v3/order/{order_id}/" + segment + "/appointment/book",
		url: "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/" + segment + "/appointment/book",
		body: `{"booking_key":"bk_1","appointment_notes":"Call first","async_confirmation":true,` +
			`"sync_confirmation_timeout_millisecond":1000,"async_confirmation_timeout_millisecond":172800000}`,
		response: appointmentJSON,
		args: []any{kind, appointmentOrder, labhealth.BookAppointmentBody{
			BookingKey: "bk_1", AppointmentNotes: new("Call first"), AsyncConfirmation: true,
			SyncConfirmationTimeoutMillisecond: new(int64(1000)), AsyncConfirmationTimeoutMillisecond: new(int64(172800000)),
		}},
	}
}

func rescheduleCall(kind labhealth.AppointmentType, segment string) apiCall {
	return apiCall{
		method: "Appointments.Reschedule", op: "PATCH /v3/order/{order_id}/" + segment + "/appointment/reschedule",
		url:      "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/" + segment + "/appointment/reschedule",
		body:     `{"booking_key":"bk_2","appointment_notes":"Call first"}`,
		response: appointmentJSON,
		args: []any{kind, appointmentOrder, labhealth.RescheduleAppointmentBody{
			BookingKey: "bk_2", AppointmentNotes: new("Call first"),
		}},
	}
}

func cancelAppointmentCall(kind labhealth.AppointmentType, segment string) apiCall {
	return apiCall{
		method: "Appointments.Cancel", op: "PATCH /v3/order/{order_id}/" + segment + "/appointment/cancel",
		url: "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/" + segment + "/appointment/cancel",
		body: `{"cancellation_reason_id":"a0a0a0a0-0005-4000-8000-000000000005","notes":"Traveling",` +
			`"cancellationReasonId":"a0a0a0a0-0005-4000-8000-000000000005","note":"Traveling"}`,
		response: appointmentJSON,
		args: []any{kind, appointmentOrder, labhealth.CancelAppointmentBody{
			CancellationReasonID: appointmentReason, Notes: new("Traveling"),
		}},
	}
}

func cancellationReasonsCall(kind labhealth.AppointmentType, segment string) apiCall {
	return apiCall{
		method: "Appointments.CancellationReasons", op: "GET /v3/order/" + segment + "/appointment/cancellation-reasons",
		url:      "/v3/order/" + segment + "/appointment/cancellation-reasons",
		response: reasonsJSON,
		args:     []any{kind},
	}
}

func getAppointmentCall(kind labhealth.AppointmentType, segment string) apiCall {
	return apiCall{
		method: "Appointments.Get", op: "GET /v3/order/{order_id}/" + segment + "/appointment",
		url:      "/v3/order/a0a0a0a0-0003-4000-8000-000000000003/" + segment + "/appointment",
		response: appointmentJSON,
		args:     []any{kind, appointmentOrder},
	}
}
