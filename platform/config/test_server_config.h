// Configuration files of a server for tests.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "config/server_config.h"

namespace muster::config {

/// Reads a configuration without faults.
inline ServeOptions read_server_config(const std::string& text) {
  auto options = parse_server_config(text, "muster.yaml", "/etc/muster", true);
  EXPECT_TRUE(options) << (options ? "" : options.error().to_string());
  return options ? *options : ServeOptions{};
}

inline std::string server_config_faults(const std::string& text, bool file_was_named = true) {
  const auto options = parse_server_config(text, "muster.yaml", "/etc/muster", file_was_named);
  return options ? "" : options.error().to_string();
}

}  // namespace muster::config
