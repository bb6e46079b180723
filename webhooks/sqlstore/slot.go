package sqlstore

import (
	"crypto/sha256"

	"github.com/google/uuid"
)

// Slots is the number of slots over which [Slot] spreads users.
const Slots = 256

// Slot returns the slot of a user, from 0 to 255. It is the first byte of the SHA-256 digest of the
// 16 bytes of the ID, so other programs can compute it, and it never changes. In PostgreSQL:
//
//	get_byte(sha256(uuid_send(user_id)), 0)
//
// Use it to give each worker, or each database, a part of the users. Deliveries without a readable
// user belong to the slot of [uuid.Nil].
func Slot(userID uuid.UUID) int {
	return int(sha256.Sum256(userID[:])[0])
}
