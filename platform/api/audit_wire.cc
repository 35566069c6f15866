#include "access/account_table.h"
#include "api/account_wire.h"
#include "api/fields.h"
#include "api/query_parameters.h"
#include "base/number.h"

namespace muster::api {

using access::AuditQuery;
using access::AuditRecord;
using base::Fault;
using base::number_of;

namespace {

constexpr int kMostRecords = 1000;

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
  for (const AuditRecord& entry : records) record::write(json, entry);
  json.close(']').close('}');
  return text;
}

Result<std::vector<AuditRecord>> audit_from_json(std::string_view text) {
  std::vector<AuditRecord> records;
  MUSTER_CHECK(read_document(text, "audit log", [&](Fields& fields) {
    fields.records("records", records, Need::kRequired);
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
