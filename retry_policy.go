// RetryPolicy and its defaults.

package labhealth

import (
	"errors"
	"fmt"
	"time"
)

// RetryPolicy configures retries and timeouts. Zero fields use the defaults, or the client's values
// in [WithCallRetry].
//
// A GET is retried after a lost connection, a timeout, 408, 429 and 5xx other than 501 and 505. Any
// other request is retried only after a 429, or if it provably never reached the service; with an
// idempotency key, after the same failures as a GET. Retry-After is honored. Without it, or if its
// date has passed, the wait is random, below a bound that doubles. A budget shared by all calls of
// a client keeps an outage from doubling the load: a thousand failing calls cost at most a hundred
// extra requests. No wait exceeds the context's deadline.
type RetryPolicy struct {
	// MaxAttempts is the number of attempts, the first included. The default is 3; 1 disables
	// retries.
	MaxAttempts int
	// BaseWait bounds the wait before the second attempt; the bound doubles with each further one.
	// The default is 250 ms.
	BaseWait time.Duration
	// MaxWait bounds the wait before any attempt, unless the service sends a Retry-After. The
	// default is 10 s.
	MaxWait time.Duration
	// MaxRetryAfter is the longest Retry-After that the client waits for. If the service asks for a
	// longer wait, the call ends with that response. The default is 60 s.
	MaxRetryAfter time.Duration
	// ReadTimeout limits one attempt of a GET or HEAD. The default is 30 s.
	ReadTimeout time.Duration
	// WriteTimeout limits one attempt of any other method. The default is 60 s.
	WriteTimeout time.Duration
	// Strict retries a write only if it was provably not sent, and therefore not after a 429. Every
	// call of a strict client is strict.
	Strict bool
}

var defaultRetry = RetryPolicy{
	MaxAttempts: 3, BaseWait: 250 * time.Millisecond, MaxWait: 10 * time.Second, MaxRetryAfter: time.Minute,
	ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute,
}

// WithRetry configures retries and timeouts. See [RetryPolicy].
func WithRetry(p RetryPolicy) Option {
	return func(c *config) (err error) {
		c.core.policy, err = p.withDefaults(c.core.policy)
		return err
	}
}

// withDefaults returns p with its zero fields set from base.
func (p RetryPolicy) withDefaults(base RetryPolicy) (RetryPolicy, error) {
	if p.MaxAttempts < 0 {
		return p, errors.New("RetryPolicy.MaxAttempts must not be negative")
	}
	if p.MaxAttempts == 0 {
		p.MaxAttempts = base.MaxAttempts
	}
	for _, field := range []struct {
		name  string
		value *time.Duration
		base  time.Duration
	}{
		{"BaseWait", &p.BaseWait, base.BaseWait},
		{"MaxWait", &p.MaxWait, base.MaxWait},
		{"MaxRetryAfter", &p.MaxRetryAfter, base.MaxRetryAfter},
		{"ReadTimeout", &p.ReadTimeout, base.ReadTimeout},
		{"WriteTimeout", &p.WriteTimeout, base.WriteTimeout},
	} {
		if *field.value < 0 {
			return p, fmt.Errorf("RetryPolicy.%s must not be negative", field.name)
		}
		if *field.value == 0 {
			*field.value = field.base
		}
	}
	p.Strict = p.Strict || base.Strict
	return p, nil
}
