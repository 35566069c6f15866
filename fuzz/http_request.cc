// Bytes that a client sends to the server's socket, whole and divided where the first byte
// determines: both ways give the same requests. An error may be detected earlier in one way than in
// the other.
#include <cstdlib>
#include <string_view>

#include "http/message_reader.h"

namespace {

using muster::http::RequestReader;

constexpr int kFault = -1;

/// The number of requests in the bytes.
int requests_in(std::string_view first, std::string_view second) {
  RequestReader reader(muster::http::Limits{});
  int requests = 0;
  RequestReader::Progress progress = reader.put(first);
  for (int part = 0; part < 2;) {
    if (progress == RequestReader::Progress::kFault) return kFault;
    if (progress == RequestReader::Progress::kDone) {
      [[maybe_unused]] const auto request = reader.take();
      ++requests;
      progress = reader.put({});
    } else if (++part < 2) {
      progress = reader.put(second);
    }
  }
  return requests;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t cut = data[0] % (text.size() + 1);
  const int whole = requests_in(text, {});
  const int parts = requests_in(text.substr(0, cut), text.substr(cut));
  if (whole != kFault && parts != kFault && whole != parts) std::abort();
  return 0;
}
