#include "store/records.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "record/fields.h"

namespace muster::store {

using base::Error;
using base::ErrorCode;

int64_t checksum_of(std::span<const std::string_view> columns) {
  uLong checksum = ::crc32(0, nullptr, 0);
  for (const std::string_view column : columns) {
    std::array<Bytef, 8> length{};
    for (size_t i = 0; i < length.size(); ++i) {
      length[i] = static_cast<Bytef>(uint64_t{column.size()} >> (8 * i));
    }
    checksum = ::crc32(checksum, length.data(), static_cast<uInt>(length.size()));
    // For a null pointer, zlib would restart the checksum.
    if (column.empty()) continue;
    checksum = ::crc32_z(checksum, reinterpret_cast<const Bytef*>(column.data()), column.size());
  }
  return static_cast<int64_t>(checksum);
}

int64_t checksum_of(const job::Job& job, std::string_view document) {
  return checksum_of({job.id, job.spec.project, job.spec.name, document});
}

int64_t checksum_of(const Object& object) {
  return checksum_of({object.kind, object.id, object.project, object.name, object.document});
}

int64_t checksum_of(const job::Project& project, std::string_view document) {
  return checksum_of({project.name, std::to_string(project.sequence), document});
}

int64_t checksum_of(const access::AuditRecord& record, std::string_view document) {
  return checksum_of({std::to_string(record.time.time_since_epoch().count()), record.actor.user,
                      record.project, record.action, document});
}

int64_t checksum_of_cordon(std::string_view node) {
  return checksum_of({node, "1"});
}

namespace {

using Key = std::vector<std::string>;

Key key_of(const job::Job& job) {
  return {job.id, job.spec.project, job.spec.name};
}
Key key_of(const job::Project& project) {
  return {project.name, std::to_string(project.sequence)};
}
Key key_of(const access::User& user) {
  return {user.name};
}
Key key_of(const access::Token& token) {
  return {token.id};
}
Key key_of(const access::Secret& secret) {
  return {secret.project, secret.name};
}
Key key_of(const job::Subscription& subscription) {
  return {subscription.id};
}
Key key_of(const job::Delivery& delivery) {
  return {delivery.id};
}
Key key_of(const access::AuditRecord& record) {
  return {std::to_string(record.time.time_since_epoch().count()), record.actor.user, record.project,
          record.action};
}

template <class T>
Result<T> read_own(const RecordRow& row, Result<T> (*read)(std::string_view)) {
  MUSTER_TRY(T value, read(row.document));
  const Key own = key_of(value);
  if (std::equal(own.begin(), own.end(), row.key.begin(), row.key.end())) return value;
  return Error{.code = ErrorCode::kInternal,
               .what = "the row contains the document of " + base::joined(own, " ")};
}

template <class T, Result<T> (*from)(std::string_view), std::vector<T> Contents::* member>
Result<void> read_into(const RecordRow& row, Contents* into) {
  MUSTER_TRY(T value, read_own<T>(row, from));
  if (into != nullptr) (into->*member).push_back(std::move(value));
  return {};
}

Result<void> read_object(const RecordRow& row, Contents* into) {
  if (into == nullptr) return {};
  const auto column = [&](size_t i) { return std::string(row.key.at(i)); };
  into->objects.push_back({.kind = column(0),
                           .id = column(1),
                           .project = column(2),
                           .name = column(3),
                           .document = std::string(row.document)});
  return {};
}

Result<void> read_node_setting(const RecordRow& row, Contents* into) {
  if (into != nullptr && row.document != "0") into->cordoned_nodes.emplace_back(row.key.front());
  return {};
}

Result<void> read_audit_for_faults(const RecordRow& row, Contents* /*into*/) {
  MUSTER_TRY([[maybe_unused]] const access::AuditRecord record,
             read_own<access::AuditRecord>(row, from_document<access::AuditRecord>));
  return {};
}

const RecordKind kKinds[] = {
    {"job",
     "job",
     {"id", "project", "name"},
     "document",
     "sequence",
     "sequence, id, project, name, idempotency_key, document, checksum",
     read_into<job::Job, from_document<job::Job>, &Contents::jobs>},
    {"object",
     "object",
     {"kind", "id", "project", "name"},
     "document",
     "kind, id",
     "NULL, id, project, name, NULL, document, checksum",
     read_object},
    {"project",
     "project",
     {"name", "CAST(sequence AS TEXT)"},
     "document",
     "sequence, name",
     "sequence, NULL, NULL, name, NULL, document, checksum",
     read_into<job::Project, from_document<job::Project>, &Contents::projects>},
    {"account",
     "user",
     {"name"},
     "document",
     "name",
     "NULL, NULL, NULL, name, NULL, document, checksum",
     read_into<access::User, from_document<access::User>, &Contents::users>},
    {"token",
     "token",
     {"id"},
     "document",
     "id",
     "NULL, id, NULL, NULL, NULL, document, checksum",
     read_into<access::Token, from_document<access::Token>, &Contents::tokens>},
    {"secret",
     "secret",
     {"project", "name"},
     "document",
     "project, name",
     "NULL, NULL, project, name, NULL, document, checksum",
     read_into<access::Secret, from_document<access::Secret>, &Contents::secrets>},
    {"subscription",
     "subscription",
     {"id"},
     "document",
     "id",
     "NULL, id, NULL, NULL, NULL, document, checksum",
     read_into<job::Subscription, from_document<job::Subscription>, &Contents::subscriptions>},
    {"delivery",
     "delivery",
     {"id"},
     "document",
     "id",
     "NULL, id, NULL, NULL, NULL, document, checksum",
     read_into<job::Delivery, from_document<job::Delivery>, &Contents::deliveries>},
    {"node_setting",
     "node",
     {"name"},
     "CAST(cordoned AS TEXT)",
     "name",
     "cordoned, NULL, NULL, name, NULL, NULL, checksum",
     read_node_setting}};

int64_t number_in(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

const std::span<const RecordKind> kRecordKinds(kKinds);

const RecordKind kAuditKind{"audit",
                            "audit record",
                            {"CAST(time AS TEXT)", "actor", "project", "action"},
                            "document",
                            "number",
                            "",
                            read_audit_for_faults};

const RecordKind& job_kind() {
  return kKinds[0];
}

namespace {

std::string query_of(const RecordKind& kind, const std::string& more_columns) {
  std::string columns;
  for (const char* column : kind.key) columns += std::string(column) + ", ";
  return "SELECT " + columns + kind.document + ", checksum" + more_columns + " FROM " + kind.table +
         " ORDER BY " + kind.order;
}

}  // namespace

std::string RecordKind::query() const {
  return query_of(*this, "");
}

std::string packed_jobs_query(const char* more) {
  return query_of(job_kind(), std::string(", facts") + more);
}

Result<void> verify_record(const RecordRow& row) {
  std::vector<std::string_view> columns = row.key;
  columns.push_back(row.document);
  if (checksum_of(columns) == row.checksum) return {};
  return Error{
      .code = ErrorCode::kInternal,
      .what = "its checksum differs from its content: bits of it have changed on the disk"};
}

Result<void> read_record(const RecordKind& kind, const RecordRow& row, Contents* into) {
  MUSTER_CHECK(verify_record(row));
  return kind.read(row, into);
}

void take_record(const RecordKind& kind, const RecordRow& row, Contents& into) {
  const Result<void> read = read_record(kind, row, &into);
  if (read) return;
  into.unreadable.push_back(describe_unreadable(kind, row, read.error().what));
  into.unreadable.back().jobs_before = into.jobs.size();
}

access::AuditRecord read_audit_record(const RecordRow& row, uint64_t number) {
  auto record = verify_record(row) ? from_document<access::AuditRecord>(row.document)
                                   : Result<access::AuditRecord>(Error{});
  if (record) {
    record->number = number;
    return *std::move(record);
  }
  return {.number = number,
          .time = base::Time(std::chrono::nanoseconds(number_in(row.key.at(0)))),
          .actor = {.user = std::string(row.key.at(1))},
          .action = std::string(row.key.at(3)),
          .target = "(unreadable record " + std::to_string(number) + ")",
          .project = std::string(row.key.at(2))};
}

std::string audit_actions_query(const std::string& kind) {
  // Jumps from each action to the next. '/' is the character behind '.'.
  const auto first = [&](const std::string& condition) {
    return "(SELECT min(action) FROM audit WHERE action " + condition + " AND action < " + kind +
           " || '/')";
  };
  return "WITH RECURSIVE each_action(action) AS (SELECT " + first(">= " + kind) +
         " UNION ALL SELECT " + first("> each_action.action") +
         " FROM each_action WHERE each_action.action IS NOT NULL)"
         " SELECT action FROM each_action WHERE action = " +
         kind + " OR action > " + kind + " || '.'";
}

std::string audit_since_condition(const std::string& since) {
  // The numbers follow the times, unless the clock was set back: the smallest number ends the
  // search. If many records are newer, the newest of them usually fill the answer without it.
  return "time >= " + since +
         " AND number >= (SELECT CASE WHEN count(*) > 10000 THEN 0 ELSE min(number) END FROM"
         " (SELECT number FROM audit WHERE time >= " +
         since + " ORDER BY time LIMIT 10001) AS newer)";
}

std::string audit_of_actions(const std::vector<std::string>& newest, const std::string& order) {
  std::string sql;
  for (const std::string& select : newest) {
    sql += (sql.empty() ? "SELECT * FROM (" : " UNION ALL SELECT * FROM (") + select + ") AS found";
  }
  return sql + order;
}

Unreadable describe_unreadable(const RecordKind& kind, const RecordRow& row, std::string fault) {
  Unreadable record{.kind = kind.noun, .fault = std::move(fault)};
  const auto column = [&](size_t i) { return std::string(row.key.at(i)); };
  if (record.is_job()) {
    record.id = column(0);
    record.project = column(1);
    record.name = column(2);
  } else if (&kind == &kKinds[1]) {
    record.kind = column(0) == "job" ? kind.noun : column(0);
    record.id = column(1);
    record.project = column(2);
    record.name = column(3);
  } else if (record.kind == "secret") {
    record.project = column(0);
    record.name = column(1);
  } else {
    record.name = column(0);
  }
  return record;
}

std::string Unreadable::title() const {
  const std::string whole = (project.empty() ? "" : project + "/") + name;
  return kind + " '" + whole + "'" + (id.empty() ? "" : " (id " + id + ")");
}

std::string Unreadable::argument() const {
  const std::string whole = (project.empty() ? "" : project + "/") + name;
  return is_job() ? whole : kind + ":" + whole;
}

std::string Unreadable::command() const {
  const std::string words = argument();
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:-";
  const bool is_plain = words.find_first_not_of(kPlain) == std::string::npos;
  return "muster store set-aside " + (is_plain ? words : base::shell_quoted(words));
}

Result<size_t> choose_unreadable(const std::vector<Unreadable>& found, const std::string& name) {
  std::vector<size_t> meant;
  for (size_t i = 0; i < found.size(); ++i) {
    const Unreadable& record = found[i];
    const bool is_this_job = record.is_job() && (record.name == name || record.id == name);
    if (is_this_job || record.argument() == name) meant.push_back(i);
  }
  if (meant.size() == 1) return meant.front();
  std::vector<std::string> arguments;
  if (meant.empty()) {
    for (const Unreadable& record : found) arguments.push_back(record.argument());
    return Error{.code = ErrorCode::kNotFound,
                 .what = "the store has no unreadable record '" + name + "'",
                 .advice = arguments.empty()
                               ? "every record of the store can be read"
                               : "these records cannot be read: " + base::joined(arguments)};
  }
  for (const size_t i : meant) arguments.push_back(found[i].argument());
  return Error{
      .code = ErrorCode::kConflict,
      .what = "'" + name + "' names " + std::to_string(meant.size()) + " unreadable records",
      .advice = "name one of them: " + base::joined(arguments)};
}

void Faults::add(std::string sentence) {
  constexpr size_t kMost = 100;
  if (sentences_.size() < kMost) sentences_.push_back(std::move(sentence));
  if (sentences_.size() == kMost) sentences_.back() = "there are more faults than are listed here";
}

void Faults::check(const RecordKind& kind, const RecordRow& row) {
  const Result<void> read = read_record(kind, row, nullptr);
  if (read) return;
  // The audit log only grows: its records are not set aside.
  if (&kind == &kAuditKind) {
    return add("audit record of " + std::string(row.key.at(1)) + " ('" +
               std::string(row.key.at(3)) + "'): " + read.error().what);
  }
  const Unreadable record = describe_unreadable(kind, row, read.error().what);
  add(record.title() + ": " + record.fault + "; `" + record.command() + "` sets it aside");
}

}  // namespace muster::store

namespace muster::store::detail {

namespace {

Error unreadable(const record::Table& table, const std::string& why) {
  return {.code = ErrorCode::kInternal,
          .what = "the document of type " + table.name() + " is not valid: " + why};
}

/// "tasks[0].phase is missing; workers must be a whole number, not text"
std::string in_one_line(const Error& error) {
  std::string text;
  for (const base::Fault& fault : error.faults) {
    text += (text.empty() ? "" : "; ") + fault.field + " " + fault.what;
  }
  return text.empty() ? error.what : text;
}

}  // namespace

std::string document_of(const record::Table& table, const void* value) {
  // One buffer for all documents of a thread: growing one anew for each costs more than the copy.
  static thread_local std::string buffer;
  buffer.clear();
  record::JsonWriter writer(buffer, record::JsonWriter::Encoding::kCbor);
  table.write(writer, value, record::Form::kStore);
  return buffer;
}

base::Result<void> read_document(std::string_view document, const record::Table& table,
                                 void* into) {
  const auto tree = record::ValueTree::of_cbor(document);
  if (!tree) return unreadable(table, "it is not CBOR");
  const auto read = record::read_document(
      tree->root(), "document", [&](record::Fields& fields) { fields.record(table, into); },
      record::Unknown::kRefused, record::Form::kStore);
  if (!read) return unreadable(table, in_one_line(read.error()));
  return {};
}

}  // namespace muster::store::detail

namespace muster::store {

MoveStatements move_statements(const RecordKind& kind, char sign) {
  const auto parameter = [&](size_t number) { return sign + std::to_string(number); };
  std::string where = " WHERE ";
  for (size_t i = 0; i < kind.key.size(); ++i) {
    where += (i == 0 ? "" : " AND ") + std::string(kind.key[i]) + " = " + parameter(i + 1);
  }
  const size_t behind = kind.key.size();
  const std::string from = std::string(" FROM ") + kind.table + where;
  return {.insert =
              "INSERT INTO set_aside (number, time, title, fault, source, sequence, id, project,"
              " name, idempotency_key, document, checksum)"
              " SELECT (SELECT coalesce(max(number), 0) + 1 FROM set_aside), CAST(" +
              parameter(behind + 1) + " AS BIGINT), CAST(" + parameter(behind + 2) +
              " AS TEXT), CAST(" + parameter(behind + 3) + " AS TEXT), '" + kind.table + "', " +
              kind.kept + from,
          .remove = "DELETE" + from};
}

std::string set_aside_sentence(std::string_view title, std::string_view fault, int64_t time) {
  return std::string(title) + ", set aside " +
         base::to_rfc3339(base::Time(std::chrono::nanoseconds(time)), 0) + ": " +
         std::string(fault);
}

}  // namespace muster::store
