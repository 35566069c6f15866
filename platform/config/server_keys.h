// The table of the keys of the server's configuration: name, flag, help, default, whether a running
// server applies a change, and how the value is read. The parser of the file, the flags, the help,
// and a test of docs/configuration.md use this table.
//
// Pure.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "config/serve_options.h"
#include "record/input.h"
#include "record/table.h"

namespace muster::config {

/// A value to be read.
struct KeyValue {
  /// In the human form. Its path is the key, or the flag or variable of the value.
  const record::Input& input;
  std::filesystem::path folder;  ///< the base of relative paths
};

struct ServerKey {
  std::string name;  ///< "limits.request_rate": a key in the map of a group, or a top-level key
  std::string flag;  ///< "--request-rate"; empty: only in the file
  /// Environment variable; overrides the file, and is overridden by the flag.
  std::string variable;
  std::string type;      ///< as in docs/configuration.md and, in capitals, in the help
  std::string fallback;  ///< the default, for people
  std::string help;
  bool reloads = false;  ///< applied on SIGHUP
  std::vector<std::string> choices;
  record::Offer offer = record::Offer::kNothing;
  bool only_named_files = false;  ///< only in a file given by --config
  bool repeats = false;           ///< its flag may be repeated; the values are joined with commas
  std::string engine;             ///< "slurm": only that engine uses it; empty: any engine

  std::function<void(const KeyValue&, ServeOptions&)> read;
  std::function<bool(const ServeOptions&, const ServeOptions&)> same;
  std::function<void(const ServeOptions& from, ServeOptions& to)> copy;
};

const std::vector<ServerKey>& server_keys();

}  // namespace muster::config
