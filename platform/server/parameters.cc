#include "server/parameters.h"

namespace muster::server {

std::string parameter(const http::Request& request, std::string_view name) {
  const auto found = request.query.find(std::string(name));
  return found == request.query.end() ? "" : found->second;
}

base::Result<bool> says_true(const http::Request& request, std::string_view name) {
  const auto found = request.query.find(std::string(name));
  if (found == request.query.end() || found->second == "false") return false;
  if (found->second == "true") return true;
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "the parameter '" + std::string(name) + "' is neither true nor false",
                     .advice = "write it as " + std::string(name) + "=true, or leave it out"};
}

std::string header(const http::Request& request, std::string_view name) {
  const auto found = request.headers.find(std::string(name));
  return found == request.headers.end() ? "" : found->second;
}

}  // namespace muster::server
