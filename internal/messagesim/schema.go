package messagesim

import (
	"fmt"
	"slices"
	"strings"
)

// A Profile is the release of macOS whose tables a database has.
type Profile int

// Profiles are those that there are tables of.
var Profiles = []Profile{12, 13, 14, 15, 26}

func (p Profile) String() string { return fmt.Sprintf("macOS%d", int(p)) }

// A column is "name" for an integer, "name:T" for a text, "name:B" for a blob; "name@13" is there
// from macOS 13, and "name@-15" up to macOS 15.
const messageColumns = `text:T replace service_center:T handle_id subject:T country:T attributedBody:B version type
	service:T account:T account_guid:T error date date_read date_delivered is_delivered is_finished is_emote is_from_me
	is_empty is_delayed is_auto_reply is_prepared is_read is_system_message is_sent has_dd_results is_service_message
	is_forward was_downgraded is_archive cache_has_attachments cache_roomnames:T was_data_detected was_deduplicated
	is_audio_message is_played date_played item_type other_handle group_title:T group_action_type share_status
	share_direction is_expirable expire_state message_action_type message_source associated_message_guid:T
	associated_message_type balloon_bundle_id:T payload_data:B expressive_send_style_id:T
	associated_message_range_location associated_message_range_length time_expressive_send_played message_summary_info:B
	ck_sync_state ck_record_id:T ck_record_change_tag:T destination_caller_id:T
	sr_ck_sync_state@13@-15 sr_ck_record_id:T@13@-15 sr_ck_record_change_tag:T@13@-15
	is_corrupt reply_to_guid:T sort_id is_spam has_unseen_mention thread_originator_guid:T thread_originator_part:T
	syndication_ranges:T synced_syndication_ranges:T was_delivered_quietly did_notify_recipient
	date_retracted@13 date_edited@13 was_detonated@13 part_count@13
	is_stewie@14 is_kt_verified@14 is_sos@14 is_critical@14 bia_reference_id:T@14 fallback_hash:T@14
	associated_message_emoji:T@15 is_pending_satellite_send@15 needs_relay@15 schedule_type@15 schedule_state@15
	sent_or_received_off_grid@15 date_recovered@26 is_time_sensitive@26 ck_chat_id:T@26 index_state@26`

const chatColumns = `style state account_id:T properties:B chat_identifier:T service_name:T room_name:T account_login:T
	is_archived last_addressed_handle:T display_name:T group_id:T is_filtered successful_query engram_id:T
	server_change_token:T ck_sync_state original_group_id:T last_read_message_timestamp cloudkit_record_id:T
	sr_server_change_token:T@-15 sr_ck_sync_state@-15 sr_cloudkit_record_id:T@-15 last_addressed_sim_id:T is_blackholed
	syndication_date@13 syndication_type@13 is_recovered@14 is_deleting_incoming_messages@14 is_pending_review@26`

const attachmentColumns = `created_date start_date filename:T uti:T mime_type:T transfer_state is_outgoing user_info:B
	transfer_name:T total_bytes is_sticker sticker_user_info:B attribution_info:B hide_attachment ck_sync_state
	ck_server_change_token_blob:B ck_record_id:T sr_ck_sync_state@-15 sr_ck_server_change_token_blob:B@-15
	sr_ck_record_id:T@-15 is_commsafety_sensitive@13 emoji_image_content_identifier:T@15
	emoji_image_short_description:T@15 preview_generation_state@26`

// columns returns the definitions of the columns in the list that the profile has.
func (p Profile) columns(list string) string {
	var out []string
	for field := range strings.FieldsSeq(list) {
		parts := strings.Split(field, "@")
		there := true
		for _, limit := range parts[1:] {
			var n int
			fmt.Sscanf(limit, "%d", &n)
			there = there && (n > 0 && int(p) >= n || n < 0 && int(p) <= -n)
		}
		if !there {
			continue
		}
		name, kind, _ := strings.Cut(parts[0], ":")
		switch kind {
		case "T":
			out = append(out, name+" TEXT")
		case "B":
			out = append(out, name+" BLOB")
		default:
			out = append(out, name+" INTEGER DEFAULT 0")
		}
	}
	return strings.Join(out, ", ")
}

// tables returns the statements that make the profile's tables.
func (p Profile) tables() []string {
	entity := func(name, list string) string {
		return fmt.Sprintf("CREATE TABLE %s (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, %s)", name, p.columns(list))
	}
	joined := ""
	if p >= 26 {
		joined = "index_state INTEGER DEFAULT 0, "
	}
	return slices.Concat([]string{
		entity("message", messageColumns), entity("chat", chatColumns), entity("attachment", attachmentColumns),
	}, []string{
		"CREATE TABLE handle (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, country TEXT, service TEXT NOT NULL, " +
			"uncanonicalized_id TEXT, person_centric_id TEXT, UNIQUE (id, service))",
		"CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER, message_date INTEGER DEFAULT 0, " + joined + "PRIMARY KEY (chat_id, message_id))",
		"CREATE TABLE chat_handle_join (chat_id INTEGER, handle_id INTEGER, UNIQUE (chat_id, handle_id))",
		"CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER, UNIQUE (message_id, attachment_id))",
		"CREATE TABLE deleted_messages (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL)",
		"CREATE TABLE kvtable (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE NOT NULL, value BLOB NOT NULL)",
		"CREATE TABLE _SqliteDatabaseProperties (key TEXT, value TEXT, UNIQUE (key))",
		"CREATE INDEX message_by_date ON message (date)",
		"CREATE INDEX join_by_message ON chat_message_join (message_id, chat_id)",
	})
}
