//   bench_api fill DATABASE COUNT
//   bench_api submit SOCKET CLIENTS COUNT GPUS COMMAND
//   bench_api list SOCKET JOBS COUNT
//   bench_api write-log MEGABYTES_A_SECOND SECONDS
//   bench_api watch-log SOCKET JOB READERS
//   bench_api hold SOCKET JOB STREAMS
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/load.h"

namespace {

size_t number(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

int run(const std::vector<std::string>& words) {
  const std::string mode = words.empty() ? "" : words[0];
  if (mode == "fill" && words.size() == 3) return bench::fill(words[1], number(words[2]));
  if (mode == "submit" && words.size() == 6) {
    return bench::submit(words[1], number(words[2]), number(words[3]),
                         static_cast<int>(number(words[4])), words[5]);
  }
  if (mode == "list" && words.size() == 4) {
    return bench::list_and_get(words[1], number(words[2]), number(words[3]));
  }
  if (mode == "write-log" && words.size() == 3) {
    return bench::write_log(std::strtod(words[1].c_str(), nullptr),
                            std::strtod(words[2].c_str(), nullptr));
  }
  if (mode == "watch-log" && words.size() == 4) {
    return bench::watch_log(words[1], words[2], number(words[3]));
  }
  if (mode == "hold" && words.size() == 4) {
    return bench::hold_streams(words[1], words[2], number(words[3]));
  }
  std::fprintf(stderr, "bench_api: unknown arguments; see the head of its main.cc\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  return run(std::vector<std::string>(argv + 1, argv + argc));
}
