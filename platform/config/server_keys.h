// The table of the keys of the server's configuration: name, flag, help, default, whether a running
// server takes over a change, and how the value is read. The parser of the file, the flags, the
// help, and a test of docs/configuration.md all read this table.
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

/// A value that is being read.
struct KeyValue {
  /// In the human form. Its path is the key, or the flag or variable that the value is from.
  const record::Input& input;
  std::filesystem::path folder;  ///< that relative paths are relative to
};

struct ServerKey {
  std::string name;      ///< "limits.request_rate": a key in the map of a group, or of the whole
  std::string flag;      ///< "--request-rate"; empty: only in the file
  std::string variable;  ///< of the environment; overrides the file; a flag overrides it
  std::string type;      ///< as in docs/configuration.md and, in capitals, in the help
  std::string fallback;  ///< the default, for people
  std::string help;
  bool reloads = false;  ///< taken over on SIGHUP
  std::vector<std::string> choices;
  record::Offer offer = record::Offer::kNothing;
  bool only_named_files = false;  ///< only in a file that --config names
  bool repeats = false;           ///< its flag: the values are read as one text, with commas
  std::string engine;             ///< "slurm": nothing else makes use of it; empty: any may

  std::function<void(const KeyValue&, ServeOptions&)> read;
  std::function<bool(const ServeOptions&, const ServeOptions&)> same;
  std::function<void(const ServeOptions& from, ServeOptions& to)> copy;
};

const std::vector<ServerKey>& server_keys();

}  // namespace muster::config
