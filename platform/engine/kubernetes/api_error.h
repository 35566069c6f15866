// The API server's refusals (metav1.Status) as typed facts and as errors with its own words.
//
// Pure; thread-safe.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "http/message.h"

namespace muster::engine::kubernetes {

struct StatusCause {
  std::string reason_code;  ///< Kubernetes' `reason`, a word for programs: "FieldValueInvalid"
  std::string message;      ///< "Invalid value: 0: must be greater than 0"
  std::string field;        ///< "spec.containers[0].image"

  bool operator==(const StatusCause&) const = default;
};

/// The detail of an error that the API server answered. Callers decide by `status` and `reason_code`.
struct ApiRefusal : base::ErrorDetail {
  int status = 0;  ///< of HTTP; 0 in an event ERROR of a watch that has none
  /// Kubernetes' `reason`, a word for programs: "NotFound", "AlreadyExists", "Forbidden", "Expired".
  std::string reason_code;
  std::string message;  ///< the API server's sentence
  std::string kind;     ///< of the object: "pods"
  std::string group;
  std::string name;
  std::vector<StatusCause> causes;
  std::optional<std::chrono::seconds> retry_after;
};

/// The API server's refusal in an error, or nullptr.
const ApiRefusal* refusal_of(const base::Error& error);
/// Whether the error is a refusal with this reason.
bool has_reason(const base::Error& error, std::string_view reason);

/// Reads an answer with a status of 400 or more. A proxy in between may answer with any text, which
/// then is the message.
ApiRefusal read_refusal(const http::Response& answer);
/// The same for a Status object, as in an event ERROR of a watch.
ApiRefusal read_refusal(const nlohmann::json& status, int http_status);

/// `doing`: "pod 'x' cannot be created"; `server`: "the API server at https://...".
///
/// 400, 422: kInvalid, with a fault for each cause. 401, 403: kRefused. 404, 410: kNotFound. 409:
/// kConflict. 429: kExhausted for quotas and budgets, else kUnavailable. 503, 504: kUnavailable.
base::Error error_of(const ApiRefusal& refusal, const std::string& doing,
                     const std::string& server);

}  // namespace muster::engine::kubernetes
