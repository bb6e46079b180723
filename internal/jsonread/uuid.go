// UUIDs of 36 characters.

package jsonread

import (
	"encoding/binary"

	"github.com/google/uuid"
)

// parseUUID parses a UUID of 36 characters, upper or lower case: the only form that the interface
// specification has. If it reports false, it leaves to alone.
func parseUUID(text *[36]byte, to *uuid.UUID) bool {
	// The digits, eight at once.
	first, wrong1 := parseHex(binary.LittleEndian.Uint64(text[0:]))
	second, wrong2 := parseHex(uint64(binary.LittleEndian.Uint32(text[9:])) | uint64(binary.LittleEndian.Uint32(text[14:]))<<32)
	third, wrong3 := parseHex(uint64(binary.LittleEndian.Uint32(text[19:])) | uint64(binary.LittleEndian.Uint32(text[24:]))<<32)
	fourth, wrong4 := parseHex(binary.LittleEndian.Uint64(text[28:]))
	if (wrong1|wrong2|wrong3|wrong4)&highBits != 0 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	binary.LittleEndian.PutUint64(to[:8], first|second<<32)
	binary.LittleEndian.PutUint64(to[8:], third|fourth<<32)
	return true
}

// parseHex parses eight hexadecimal digits, one in each byte, as four bytes. If one is invalid,
// wrong has the high bit of a byte.
func parseHex(digits uint64) (value, wrong uint64) {
	letter := digits >> 6 & lowBits // 1 for each
	digits |= letter << 5           // in lower case
	value = digits - '0'*lowBits - letter*('a'-'0')
	wrong = value | ('9'*lowBits + letter*('f'-'9') - digits) | digits // too small, too large, not ASCII
	value += letter * 10
	value = (value<<4 | value>>8) & 0x00ff00ff00ff00ff // two digits in every other byte
	value = (value | value>>8) & 0x0000ffff0000ffff
	return (value | value>>16) & 0xffffffff, wrong
}

// formatUUID writes the digits of a UUID between the dashes of text, in lower case.
func formatUUID(text *[36]byte, id *uuid.UUID) {
	first, second := formatHex(binary.LittleEndian.Uint32(id[0:])), formatHex(binary.LittleEndian.Uint32(id[4:]))
	third, fourth := formatHex(binary.LittleEndian.Uint32(id[8:])), formatHex(binary.LittleEndian.Uint32(id[12:]))
	binary.LittleEndian.PutUint64(text[0:], first)
	binary.LittleEndian.PutUint32(text[9:], uint32(second))
	binary.LittleEndian.PutUint32(text[14:], uint32(second>>32))
	binary.LittleEndian.PutUint32(text[19:], uint32(third))
	binary.LittleEndian.PutUint32(text[24:], uint32(third>>32))
	binary.LittleEndian.PutUint64(text[28:], fourth)
}

// formatHex returns the hexadecimal digits of four bytes, as parseHex takes them.
//
//go:noinline // as grow of orders
func formatHex(value uint32) (digits uint64) {
	digits = uint64(value)
	digits = (digits | digits<<16) & 0x0000ffff0000ffff
	digits = (digits | digits<<8) & 0x00ff00ff00ff00ff // a byte in every other byte
	digits = (digits>>4 | digits<<8) & 0x0f0f0f0f0f0f0f0f
	letter := (digits + 6*lowBits) >> 4 & lowBits // 1 for each
	return digits + '0'*lowBits + letter*('a'-'0'-10)
}
