// In the place of base/log.cc: the same calls, for a program whose standard error is the output of
// a Slurm job, which people read.
#include <cstdio>
#include <string>

#include "base/log.h"

namespace muster::base {

namespace {

void print(std::string_view level, std::string_view text) {
  const std::string line = "muster-node: " + std::string(level) + std::string(text) + "\n";
  std::fputs(line.c_str(), stderr);
}

}  // namespace

void log_info(std::string_view text, const LogFields&) {
  print("", text);
}
void log_warning(std::string_view text, const LogFields&) {
  print("warning: ", text);
}
void log_error(std::string_view text, const LogFields&) {
  print("", text);
}

}  // namespace muster::base
