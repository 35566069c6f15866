#include "launch/elastic.h"

#include <algorithm>
#include <string_view>

#include "launch/command_words.h"
#include "launch/program.h"

namespace muster::launch {

using job::JobSpec;
using job::Role;

namespace {

template <typename Is>
bool any_word(const JobSpec& spec, Role role, Is is) {
  const std::vector<std::string> command = program_of(spec, role, {});
  const std::vector<std::string_view> words = words_of(command);
  return std::any_of(words.begin(), words.end(), is);
}

/// The modules are the same program as torchrun, by its names of before and of old.
bool runs_torchrun(const JobSpec& spec, Role role) {
  return any_word(spec, role, [](std::string_view word) {
    return is_file_named(word, "torchrun") || word == "torch.distributed.run" ||
           word == "torch.distributed.launch";
  });
}

/// horovodrun is told of a script, Muster's or one of the user's own, only where it is to be
/// elastic.
bool asks_who_is_there(const JobSpec& spec) {
  return any_word(spec, Role::kLauncher, [](std::string_view word) {
    return is_file_named(word, "discover_hosts.sh") || word.starts_with("--host-discovery-script");
  });
}

}  // namespace

bool resizes_live(const JobSpec& spec) {
  if (!is_elastic(spec)) return false;
  if (spec.scheduling.resize != job::Resize::kAuto) {
    return spec.scheduling.resize == job::Resize::kLive;
  }
  switch (spec.kind) {
    case job::Kind::kMpi:
      return asks_who_is_there(spec);
    case job::Kind::kTorch:
      return runs_torchrun(spec, Role::kMaster) && runs_torchrun(spec, Role::kWorker);
    case job::Kind::kGrpc:
    case job::Kind::kSingle:
      break;
  }
  return false;
}

}  // namespace muster::launch
