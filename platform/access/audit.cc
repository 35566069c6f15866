#include "access/audit.h"

namespace muster::access {

namespace {

/// "job" matches "job.submit" and all other actions on jobs; "job.submit" matches only itself.
bool is_of(const std::string& action, const std::string& kind) {
  if (!action.starts_with(kind)) return false;
  return action.size() == kind.size() || action[kind.size()] == '.';
}

}  // namespace

bool matches(const AuditQuery& query, const AuditRecord& record) {
  if (query.user && *query.user != record.actor.user) return false;
  if (query.project && *query.project != record.project) return false;
  if (query.action && !is_of(record.action, *query.action)) return false;
  if (query.since && record.time < *query.since) return false;
  return !query.before || record.number < *query.before;
}

}  // namespace muster::access
