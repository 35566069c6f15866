#include "dialects/runai/no_effect.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/units.h"
#include "dialects/runai/command_tree.h"
#include "dialects/runai/key_values.h"

namespace muster::dialects::runai {

namespace {

struct Idle {
  const char* flag;
  const char* why;
};

constexpr auto kIdle = std::to_array<Idle>({
    {"--host-ipc", "tasks keep an IPC space of their own"},
    {"--host-network", "which network tasks use, the server decides"},
    {"--port", "no service is made; tasks listen on their machine"},
    {"--address", "no service is made; tasks listen on their machine"},
    {"--service-type", "no service is made; tasks listen on their machine"},
    {"--prevent-privilege-escalation", "tasks gain no rights in any case"},
    {"--extended-resource", "nothing is claimed but GPUs, CPUs and memory"},
    {"--master-extended-resource", "nothing is claimed but GPUs, CPUs and memory"},
    {"--master-no-pvcs", "the master finds all volumes of the job"},
    {"--toleration", "nodes have no taints"},
    {"--elastic", "the job keeps the GPUs that it asks for"},
});

void check_toleration(const std::string& text, cli::FlagReader& reader) {
  const std::string flag = "--toleration";
  const KeyValues values = read_key_values(
      flag, text, {.with_value = {"operator", "key", "value", "effect", "seconds"}}, reader);
  const std::string how = value_of(values, "operator");
  if (how != "Equal" && how != "Exists" && !reader.is_at_fault(flag)) {
    reader.fault(flag, "must contain operator=Equal or operator=Exists");
  }
  const std::string seconds = value_of(values, "seconds");
  if (!seconds.empty() && !base::number_of<int>(seconds)) {
    reader.fault(flag, "seconds: '" + seconds + "' is not a whole number");
  }
}

/// "8888", or "30000:8888".
bool is_port(const std::string& text) {
  const auto is_number = [](const std::string& part) {
    const auto number = base::number_of<int>(part);
    return number && *number > 0 && *number < 65536;
  };
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return is_number(text);
  return is_number(text.substr(0, colon)) && is_number(text.substr(colon + 1));
}

void check_choice(const std::string& flag, const std::vector<std::string>& choices,
                  cli::FlagReader& reader) {
  if (reader.has(flag)) reader.choice(flag, choices);
}

void check_values(cli::FlagReader& reader) {
  check_choice("--image-pull-policy", {"Always", "IfNotPresent", "Never"}, reader);
  check_choice("--service-type", {"portforward", "loadbalancer", "nodeport", "ingress"}, reader);
  check_choice("--clean-pod-policy", {"Running", "All", "None"}, reader);
  for (const cli::Flag& flag : common_flags()) {
    if (!flag.choices.empty()) check_choice(flag.name, flag.choices, reader);
  }
  for (const std::string& text : reader.texts("--toleration")) check_toleration(text, reader);
  for (const std::string& text : reader.texts("--port")) {
    if (!is_port(text)) reader.fault("--port", "'" + text + "' is neither PORT nor HOST:PORT");
  }
  read_pairs("--extended-resource", "write NAME=N", reader);
  read_pairs("--master-extended-resource", "write NAME=N", reader);
}

}  // namespace

std::vector<std::string> notes_of_idle_flags(cli::FlagReader& reader) {
  check_values(reader);
  std::vector<std::string> notes;
  for (const Idle& idle : kIdle) {
    if (reader.has(idle.flag)) notes.push_back(std::string(idle.flag) + ": " + idle.why);
  }
  const std::string policy = reader.text("--clean-pod-policy", "Running");
  if (policy != "Running") {
    notes.push_back("--clean-pod-policy " + policy +
                    ": workers end with the job, which stays until 'runai delete'");
  }
  return notes;
}

void refuse_unserved_flags(cli::FlagReader& reader) {
  if (reader.has("--template")) {
    reader.fault("--template", "there are no templates here; say its values as flags");
  }
  if (reader.has("--node-type")) {
    reader.fault("--node-type", "nodes have no types here; say where it may run with --node-pools");
  }
  if (reader.has("--jupyter")) {
    reader.fault("--jupyter",
                 "is not served here: no port of a job is opened to others; run the notebook with "
                 "--interactive, and its own command behind '--'");
  }
  if (reader.has("--tty") && !reader.has("--stdin") && !reader.has("--attach")) {
    reader.fault("", "--stdin is required for containers with -t/--tty=true");
  }
}

}  // namespace muster::dialects::runai
