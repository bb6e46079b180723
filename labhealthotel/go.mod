module github.com/labhealth/labhealth-go/labhealthotel

go 1.26.0

require (
	github.com/labhealth/labhealth-go v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)

replace github.com/labhealth/labhealth-go => ../
