module github.com/labhealth/labhealth-go/examples/bulk-import

go 1.26

replace github.com/labhealth/labhealth-go => ../..

require (
	github.com/google/uuid v1.6.0
	github.com/labhealth/labhealth-go v0.0.0-00010101000000-000000000000
	github.com/schollz/progressbar/v3 v3.19.0
	golang.org/x/term v0.37.0
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	golang.org/x/sys v0.38.0 // indirect
)
