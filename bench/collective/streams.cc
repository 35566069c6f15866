#include "streams.h"

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace bench {
namespace {

constexpr std::size_t kFewest = 5;

}  // namespace

void measure_stream(const std::string& direction, std::uint64_t bytes, double seconds,
                    const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  std::vector<double> samples;
  double total = 0;
  while (samples.size() < kFewest || total < seconds) {
    const Clock::time_point begin = Clock::now();
    call();
    samples.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    total += samples.back();
  }
  std::printf("{\"direction\": \"%s\", \"bytes\": %" PRIu64 ", \"us\": [", direction.c_str(),
              bytes);
  for (std::size_t i = 0; i < samples.size(); i++) {
    std::printf("%s%.1f", i == 0 ? "" : ", ", samples[i] * 1e6);
  }
  std::printf("]}\n");
  std::fflush(stdout);
}

void run_side(
    int argc, char** argv, const std::function<void(const std::string&, const std::string&)>& serve,
    const std::function<void(const std::string&, const std::string&, const Arguments&)>& work) {
  const Arguments arguments(argc, argv);
  const char* const key = std::getenv("MUSTER_RENDEZVOUS_KEY");
  if (key == nullptr) fail("MUSTER_RENDEZVOUS_KEY is not set");
  const std::string address = arguments.text("address", "");
  if (arguments.text("role", "") == "server") {
    serve(address, key);
  } else {
    work(address, key, arguments);
  }
}

void verify(std::span<const float> values, float expected) {
  for (std::size_t i = 0; i < values.size(); i++) {
    if (values[i] != expected) {
      fail("value " + std::to_string(i) + " is " + std::to_string(values[i]) + ", not " +
           std::to_string(expected));
    }
  }
}

}  // namespace bench
