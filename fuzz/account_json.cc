// JSON about users, tokens and secrets that a shared server receives, and the command line's list
// of servers. The worst result is an error, and encoding and decoding a decoded value gives the
// same value.
#include <cstdlib>
#include <string_view>

#include "api/account_wire.h"
#include "api/job_query.h"
#include "api/wire.h"
#include "cli/connection/contexts.h"

namespace {

template <class Read, class Write>
void comes_back(std::string_view text, const Read& read, const Write& write) {
  const auto value = read(text);
  if (!value) return;
  const auto again = read(write(*value));
  if (!again || *again != *value) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  comes_back(text, whoami_from_json, whoami_to_json);
  comes_back(text, user_from_json, user_to_json);
  comes_back(text, user_change_from_json, user_change_to_json);
  comes_back(
      text, [](std::string_view one) { return token_request_from_json(one); },
      token_request_to_json);
  comes_back(text, members_from_json, members_to_json);
  comes_back(text, secret_value_from_json, secret_value_to_json);
  [[maybe_unused]] const auto token = new_token_from_json(text);
  [[maybe_unused]] const auto user = new_user_from_json(text);
  [[maybe_unused]] const auto records = audit_from_json(text);
  [[maybe_unused]] const auto page = job_page_from_json(text);
  [[maybe_unused]] const auto event = job_event_from_json(text);
  [[maybe_unused]] const auto contexts = muster::cli::contexts_from_json(text);
  return 0;
}
