#include "cli/container_words.h"

#include "base/units.h"

namespace muster::cli {

namespace {

void append_item(std::string& list, const std::string& separator, const std::string& item) {
  if (!item.empty()) list += (list.empty() ? "" : separator) + item;
}

}  // namespace

std::string launch_words(const job::Job& job) {
  if (!job.launch) return "";
  const job::LaunchFacts& facts = *job.launch;
  std::string words;
  if (facts.by != job::LaunchBy::kAuto) {
    words = "by " + std::string(job::to_string(facts.by));
    append_item(words, ": ", facts.why);
  }
  append_item(words, "; ", facts.mpi);
  return words;
}

std::string container_words(const job::ContainerSpec& container) {
  std::string words;
  if (container.pull != job::ContainerSpec().pull) {
    append_item(words, ", ", "image pulled " + std::string(job::to_string(container.pull)));
  }
  if (container.writable_root) append_item(words, ", ", "writable root");
  if (container.new_privileges) append_item(words, ", ", "new privileges");
  for (const std::string& name : container.capabilities) append_item(words, ", ", name);
  if (container.shm_bytes != 0) {
    append_item(words, ", ", base::format_bytes(container.shm_bytes) + " of /dev/shm");
  }
  return words;
}

}  // namespace muster::cli
