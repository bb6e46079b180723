// Package powercut tests what is left after a loss of power.
package powercut
