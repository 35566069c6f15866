#include "cli/server_flags.h"

#include "base/text.h"
#include "cli/server_keys.h"

namespace muster::cli {

ServerSource read_server_source(const Caller& caller, const FlagReader& reader) {
  ServerSource source{.folder = caller.folder};
  if (reader.has("--config")) {
    source.file = (source.folder / reader.text("--config")).lexically_normal();
    source.file_was_named = true;
  }
  for (const ServerKey& key : server_keys()) {
    const auto variable = caller.environment.find(key.variable);
    if (variable != caller.environment.end() && !variable->second.empty()) {
      source.settings.push_back({key.name, key.variable, variable->second});
    }
  }
  for (const ServerKey& key : server_keys()) {
    if (!key.flag.empty() && reader.has(key.flag)) {
      source.settings.push_back({key.name, key.flag, base::joined(reader.texts(key.flag), ",")});
    }
  }
  return source;
}

ServeOptions read_server_flags(const ServerSource& source, FlagReader& reader) {
  ServeOptions options;
  for (base::Fault& fault : apply_settings(source, options)) {
    reader.fault(std::move(fault.field), std::move(fault.what));
  }
  options.ready_fd = reader.number("--ready-fd", -1);
  return options;
}

}  // namespace muster::cli
