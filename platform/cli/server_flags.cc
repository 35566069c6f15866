#include "cli/server_flags.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <string>

#include "base/text.h"

namespace muster::cli {

namespace {

constexpr const char* kDeclareGpus = "MUSTER_DECLARE_GPUS";

/// The flag wins over the variable.
std::string read_declared_gpus(const Caller& caller, const FlagReader& reader) {
  const auto variable = caller.environment.find(kDeclareGpus);
  return reader.text("--declare-gpus",
                     variable == caller.environment.end() ? "" : variable->second);
}

/// "rack=r1,block=b1"
std::map<std::string, std::string> read_topology(FlagReader& reader) {
  std::map<std::string, std::string> topology;
  for (const std::string& entry : base::split(reader.text("--topology"), ',')) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == entry.size()) {
      reader.fault("--topology", "'" + entry + "' is not LEVEL=DOMAIN, as in rack=r1");
      continue;
    }
    topology[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  return topology;
}

std::optional<std::chrono::milliseconds> read_stale_grace(
    FlagReader& reader, std::optional<std::chrono::milliseconds> fallback) {
  if (reader.text("--stale-grace") == "never") return std::nullopt;
  return reader.has("--stale-grace") ? reader.duration("--stale-grace", {}) : fallback;
}

double read_decay(FlagReader& reader) {
  if (!reader.has("--decay")) return 0;
  const std::string text = reader.text("--decay");
  double decay = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, decay);
  if (error == std::errc{} && end == last && std::isfinite(decay) && decay >= 0) return decay;
  reader.fault("--decay", "'" + text + "' is not a number such as 0, 0.5 or 2");
  return 0;
}

}  // namespace

ServeOptions read_server_flags(const Caller& caller, FlagReader& reader) {
  ServeOptions options;
  if (reader.has("--state-dir")) {
    const std::filesystem::path folder(caller.folder);
    options.state_folder = (folder / reader.text("--state-dir")).lexically_normal();
  }
  if (reader.has("--idle-exit")) options.idle_exit = reader.duration("--idle-exit", {});
  options.declared_gpus = read_declared_gpus(caller, reader);
  options.node_pool = reader.text("--node-pool", options.node_pool);
  if (options.node_pool.empty()) reader.fault("--node-pool", "is empty");
  options.topology = read_topology(reader);
  options.packing = reader.choice("--packing", {"fragmentation", "pack", "spread"});
  options.stale_grace = read_stale_grace(reader, options.stale_grace);
  options.forbearance = reader.duration("--forbearance", options.forbearance);
  options.patience = reader.duration("--patience", options.patience);
  options.decay = read_decay(reader);
  options.ready_fd = reader.number("--ready-fd", -1);
  return options;
}

}  // namespace muster::cli
