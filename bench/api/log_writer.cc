#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "api/load.h"

namespace bench {

int write_log(double megabytes_a_second, double seconds) {
  constexpr size_t kLine = 100;
  constexpr int kStepsASecond = 100;
  const auto lines_a_step = static_cast<size_t>(megabytes_a_second * 1e6 / kLine / kStepsASecond);
  const auto steps = static_cast<int>(seconds * kStepsASecond);
  const auto start = std::chrono::steady_clock::now();
  size_t number = 0;
  for (int step = 0; step < steps; ++step) {
    std::string text;
    for (size_t i = 0; i < lines_a_step; ++i) {
      std::string line = "line " + std::to_string(number++) + " ";
      line.resize(kLine - 1, '.');
      text += line + "\n";
    }
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) return 1;
    std::fflush(stdout);
    std::this_thread::sleep_until(start +
                                  (step + 1) * std::chrono::milliseconds(1000 / kStepsASecond));
  }
  return 0;
}

}  // namespace bench
