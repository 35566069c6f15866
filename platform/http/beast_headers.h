// What request_reader.cc and response_reader.cc share of turning Beast's types into ours. Only they
// include it: Beast costs seconds of compile time wherever it is seen.
#pragma once

#include <algorithm>
#include <boost/beast/http/fields.hpp>
#include <string>

#include "http/message.h"

namespace muster::http {

/// Names in lower case; a header that repeats is joined by commas (RFC 9110, 5.3).
inline Headers headers_of(const boost::beast::http::fields& fields) {
  Headers headers;
  for (const auto& field : fields) {
    std::string name(field.name_string());
    std::transform(name.begin(), name.end(), name.begin(), [](char letter) {
      return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + ('a' - 'A')) : letter;
    });
    std::string& value = headers[std::move(name)];
    if (!value.empty()) value += ", ";
    value += field.value();
  }
  return headers;
}

}  // namespace muster::http
