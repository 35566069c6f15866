#include "server/request_id.h"

#include <string_view>

namespace muster::server {

namespace {

constexpr size_t kLongest = 64;
constexpr size_t kFresh = 20;  // 100 random bits
constexpr std::string_view kAllowed =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

bool is_sane(std::string_view id) {
  return !id.empty() && id.size() <= kLongest &&
         id.find_first_not_of(kAllowed) == std::string_view::npos;
}

}  // namespace

std::string request_id(const http::Request& request, base::RandomSource& random) {
  const auto given = request.headers.find("x-request-id");
  if (given != request.headers.end() && is_sane(given->second)) return given->second;
  return base::random_name(random, kFresh);
}

}  // namespace muster::server
