// Base64 (RFC 4648), padded: how keys and configurations are written in text files and variables.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::launch {

std::string base64(std::string_view bytes);
/// With - and _ in the place of + and /.
std::string base64_for_urls(std::string_view bytes);

}  // namespace muster::launch
