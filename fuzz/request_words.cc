// Short texts with a meaning in requests: tokens, positions in streams and lists, and commands to
// run in a task. A value that is read from a text must not contain more than the text.
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "access/identity.h"
#include "access/secret_box.h"
#include "api/job_query.h"
#include "api/terminal.h"
#include "control/change_feed.h"
#include "http/tls.h"
#include "logs/log_position.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string copy(text);
  if (const auto token = access::parse_token(text)) {
    if ("muster_" + token->id + "_" + token->secret != text) std::abort();
  }
  if (const auto position = control::feed_position_of(text)) {
    if (control::feed_position_of(control::to_string(*position)) != *position) std::abort();
  }
  if (const auto place = logs::log_position_of(text)) {
    if (logs::log_position_of(logs::to_string(*place)) != *place) std::abort();
  }
  if (const auto fingerprint = http::parse_fingerprint(text)) {
    if (fingerprint->size() != 64) std::abort();
  }
  for (const auto order : {api::JobQuery::Order::kOldestFirst, api::JobQuery::Order::kNewestFirst,
                           api::JobQuery::Order::kByName}) {
    const auto place = api::place_of_cursor(order, text);
    if (place && !api::place_of_cursor(order, api::cursor_text(order, *place))) std::abort();
  }
  [[maybe_unused]] const auto key = access::parse_key(text);
  [[maybe_unused]] const auto query =
      api::job_query_from_parameters({{"phase", copy}, {"limit", copy}, {"cursor", copy}});
  [[maybe_unused]] const auto request =
      api::exec_request_from_parameters({{"command", copy}, {"rows", copy}, {"columns", copy}});
  return 0;
}
