package telegram

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// What a message holds besides words and files.
type (
	content struct {
		Entities        []entity   `json:"entities"`
		CaptionEntities []entity   `json:"caption_entities"`
		Location        *location  `json:"location"`
		Venue           *venue     `json:"venue"` // has a location too
		Contact         *contact   `json:"contact"`
		Sticker         *sticker   `json:"sticker"`
		Poll            *poll      `json:"poll"`
		Dice            *dice      `json:"dice"`
		Game            *something `json:"game"`
		Story           *something `json:"story"`
		Paid            *something `json:"paid_media"`
		Checklist       *something `json:"checklist"`
		Invoice         *something `json:"invoice"`
		Giveaway        *something `json:"giveaway"`
	}
	entity struct { // in UTF-16 units
		Type   string `json:"type"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
		URL    string `json:"url"`
	}
	location struct {
		Latitude  float64 `json:"latitude"`
		Longitude float64 `json:"longitude"`
	}
	venue struct {
		Title   string `json:"title"`
		Address string `json:"address"`
	}
	contact struct {
		Phone string `json:"phone_number"`
		First string `json:"first_name"`
		Last  string `json:"last_name"`
	}
	sticker struct {
		Emoji string `json:"emoji"`
	}
	poll struct {
		Question string   `json:"question"`
		Options  []option `json:"options"`
	}
	option struct {
		Text string `json:"text"`
	}
	dice struct {
		Emoji string `json:"emoji"`
		Value int    `json:"value"`
	}
	something struct{}
)

// mostLinks is how many addresses of one text are read.
const mostLinks = 100

// withLinks returns a text with the addresses behind its words: else only who sees it in Telegram knows
// where a link leads.
func withLinks(text string, list []entity) string {
	list = slices.Clone(list[:min(len(list), mostLinks)])
	slices.SortStableFunc(list, func(a, b entity) int { return b.Offset + b.Length - a.Offset - a.Length })
	units := utf16.Encode([]rune(text))
	for _, e := range list {
		end := e.Offset + e.Length
		if e.Type != "text_link" || e.URL == "" || e.Offset < 0 || e.Length <= 0 || end < 0 || end > len(units) ||
			string(utf16.Decode(units[e.Offset:end])) == e.URL {
			continue
		}
		units = slices.Insert(units, end, utf16.Encode([]rune(" ("+e.URL+")"))...)
	}
	return string(utf16.Decode(units))
}

// words returns in words what a message holds that has none; in brackets, so that it is no command.
// unreadable says what of it can't be passed on.
func (c content) words() (text, unreadable string) {
	switch {
	case c.Location != nil:
		text = fmt.Sprintf("%.6f, %.6f", c.Location.Latitude, c.Location.Longitude)
		if c.Venue != nil {
			text = c.Venue.Title + ", " + c.Venue.Address + ": " + text
		}
		return "(location: " + text + ")", ""
	case c.Contact != nil:
		return "(contact: " + strings.TrimSpace(c.Contact.First+" "+c.Contact.Last) + ", " + c.Contact.Phone + ")", ""
	case c.Sticker != nil:
		return strings.TrimSpace("(sticker "+c.Sticker.Emoji) + ")", ""
	case c.Dice != nil:
		return fmt.Sprintf("(%s: %d)", c.Dice.Emoji, c.Dice.Value), ""
	case c.Poll != nil:
		text = "(poll: " + c.Poll.Question
		for i, o := range c.Poll.Options {
			text += fmt.Sprintf("\n%d. %s", i+1, o.Text)
		}
		return text + ")", ""
	}
	for what, is := range map[string]*something{"a game": c.Game, "a story": c.Story, "a paid post": c.Paid, "a checklist": c.Checklist, "an invoice": c.Invoice, "a giveaway": c.Giveaway} {
		if is != nil {
			return "", "it is " + what + ", which a bot cannot pass on"
		}
	}
	return "", ""
}
