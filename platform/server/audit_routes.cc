// What was changed: everything for who sees the server, that of a project for its admins.
#include <algorithm>

#include "access/audit.h"
#include "api/account_wire.h"
#include "server/answers.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Error;
using base::ErrorCode;

base::Result<void> may_read(const control::Controller& controller, const Call& call,
                            const access::AuditQuery& query) {
  if (call.who.over_server() >= Role::kViewer) return {};
  if (query.project) return Sight(controller, call.who).project(*query.project, Role::kAdmin);
  return Error{
      .code = ErrorCode::kRefused,
      .what = "the whole audit log takes the role 'viewer' for the server; yours is '" +
              std::string(to_string(call.who.over_server())) + "'",
      .advice = "as an admin of a project, ask for that one: --project NAME, or ?project=NAME"};
}

/// What was before the project came into being was of another that bore its name.
base::Result<void> leave_out_namesakes(const control::Controller& controller,
                                       access::AuditQuery& query) {
  if (*query.project == job::kDefaultProject) return {};  // is always there
  MUSTER_TRY(const job::ProjectStatus status, controller.projects().status(*query.project));
  const base::Time since = status.project.created;
  query.since = std::max(query.since.value_or(since), since);
  return {};
}

}  // namespace

void add_audit_routes(Router& router, control::Accounts& accounts,
                      control::Controller& controller) {
  router.add("GET", "/v1/audit", Permission::kSignedIn,
             at_once([&accounts, &controller](const Call& call) -> Answer {
               MUSTER_TRY(access::AuditQuery query,
                          api::audit_query_from_parameters(call.request.query));
               MUSTER_CHECK(may_read(controller, call, query));
               if (!call.who.sees_everything()) {
                 MUSTER_CHECK(leave_out_namesakes(controller, query));
               }
               MUSTER_TRY(const std::vector<access::AuditRecord> records, accounts.audit(query));
               return json_answer(200, api::audit_to_json(records));
             }));
}

}  // namespace muster::server
