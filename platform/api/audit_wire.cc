#include "api/account_wire.h"
#include "api/fields.h"
#include "api/json_writer.h"
#include "api/query_parameters.h"
#include "api/rfc3339.h"
#include "base/number.h"

namespace muster::api {

using access::AuditQuery;
using access::AuditRecord;
using access::FieldChange;
using base::Fault;
using base::number_of;

namespace {

constexpr int kMostRecords = 1000;

void write_record(JsonWriter& json, const AuditRecord& record) {
  json.open('{');
  json.key("number").number(static_cast<int64_t>(record.number));
  json.key("time").time(record.time);
  json.key("user").text(record.actor.user);
  json.key("address").text(record.actor.address);
  json.key("token").text(record.actor.token);
  json.key("request").text(record.actor.request);
  json.key("action").text(record.action);
  json.key("target").text(record.target);
  json.key("project").text(record.project);
  json.key("changes").open('[');
  for (const FieldChange& change : record.changes) {
    json.open('{').key("field").text(change.field);
    json.key("before").text(change.before).key("after").text(change.after).close('}');
  }
  json.close(']').close('}');
}

void read_audit_record(Fields& fields, AuditRecord& record) {
  int64_t number = 0;
  fields.read("number", number, Need::kRequired);
  record.number = static_cast<uint64_t>(number);
  fields.read("time", record.time, Need::kRequired);
  fields.read("user", record.actor.user);
  fields.read("address", record.actor.address);
  fields.read("token", record.actor.token);
  fields.read("request", record.actor.request);
  fields.read("action", record.action, Need::kRequired);
  fields.read("target", record.target);
  fields.read("project", record.project);
  fields.each("changes", [&](Fields& inner) {
    FieldChange& change = record.changes.emplace_back();
    inner.read("field", change.field, Need::kRequired);
    inner.read("before", change.before);
    inner.read("after", change.after);
  });
}

/// What is wrong with one parameter, or empty once it is taken into `query`.
std::string take_audit_parameter(AuditQuery& query, const std::string& name,
                                 const std::string& value) {
  const auto plain = [&](std::optional<std::string>& into) {
    into = value;
    return std::string();
  };
  if (name == "user") return plain(query.user);
  if (name == "project") return plain(query.project);
  if (name == "action") return plain(query.action);
  if (name == "since") {
    query.since = parse_rfc3339(value);
    return query.since ? "" : in_quotes(value) + " is not a time; write it as 2026-01-31T12:34:56Z";
  }
  if (name == "before") {
    query.before = number_of<uint64_t>(value);
    return query.before.value_or(0) > 0 ? "" : in_quotes(value) + " is not the number of a record";
  }
  if (name == "limit") {
    query.limit = number_of<int>(value).value_or(0);
    const bool good = query.limit >= 1 && query.limit <= kMostRecords;
    return good ? "" : in_quotes(value) + " is not a number of records; give 1 to 1000";
  }
  return unknown_parameter(name, {"user", "project", "action", "since", "before", "limit"});
}

}  // namespace

std::string audit_to_json(const std::vector<AuditRecord>& records) {
  std::string text;
  JsonWriter json(text);
  json.open('{').key("records").open('[');
  for (const AuditRecord& record : records) write_record(json, record);
  json.close(']').close('}');
  return text;
}

Result<std::vector<AuditRecord>> audit_from_json(std::string_view text) {
  std::vector<AuditRecord> records;
  MUSTER_CHECK(read_document(text, "audit log", [&](Fields& fields) {
    fields.each(
        "records", [&](Fields& inner) { read_audit_record(inner, records.emplace_back()); },
        Need::kRequired);
  }));
  return records;
}

Parameters audit_query_parameters(const AuditQuery& query) {
  Parameters parameters;
  if (query.user) parameters["user"] = *query.user;
  if (query.project) parameters["project"] = *query.project;
  if (query.action) parameters["action"] = *query.action;
  if (query.since) append_rfc3339(parameters["since"], *query.since);
  if (query.before) parameters["before"] = std::to_string(*query.before);
  if (query.limit != AuditQuery().limit) parameters["limit"] = std::to_string(query.limit);
  return parameters;
}

Result<AuditQuery> audit_query_from_parameters(const Parameters& parameters) {
  AuditQuery query;
  std::vector<Fault> faults =
      read_parameters(parameters, [&](const std::string& name, const std::string& value) {
        return take_audit_parameter(query, name, value);
      });
  if (faults.empty()) return query;
  return wrong_query("the query for the audit log is wrong", std::move(faults));
}

}  // namespace muster::api
