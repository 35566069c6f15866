// One request on its way through the server: what was asked, and by whom.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "access/audit.h"
#include "access/identity.h"
#include "http/message.h"

namespace muster::server {

/// What stands at the {names} of a route's path.
using PathValues = std::map<std::string, std::string>;

struct Call {
  http::Request request;
  PathValues path;
  access::Identity who;
  std::string id;  ///< of the request: in the log, in x-request-id, in the audit log
  /// Whether the caller is still who it was, with the same rights: for answers that last. Empty: it
  /// always is.
  std::function<bool()> still_valid;

  access::Actor actor() const { return {who.user, who.address, who.token, id}; }
};

/// Who may use a route at all. What of it they see and may change is then decided by project.
enum class Permission {
  kAnybody,   ///< also without a token: gives away nothing
  kInvited,   ///< anybody with a token, an invitation included: to log in
  kSignedIn,  ///< anybody with a token that is no invitation; its handler looks at the project
  kServerViewer,
  kServerAdmin,
};

}  // namespace muster::server
