// A stream of events, whole and divided in two: both ways give the same events.
#include "http/server_sent_events.h"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::vector<std::string> events_in(std::string_view first, std::string_view second) {
  std::vector<std::string> events;
  const auto keep = [&](std::string_view event, std::string_view data) {
    events.push_back(std::string(event) + "\n" + std::string(data));
    return true;
  };
  muster::http::EventDecoder decoder;
  decoder.put(first, keep);
  decoder.put(second, keep);
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = data[0] % (text.size() + 1);
  if (events_in(text, {}) != events_in(text.substr(0, cut), text.substr(cut))) std::abort();
  return 0;
}
