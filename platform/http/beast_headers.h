// Converts Beast's headers and answers to ours. Only message_reader.cc, websocket.cc and websocket_client.cc
// include this header: Beast costs seconds of compile time in every file that includes it.
#pragma once

#include <algorithm>
#include <boost/beast/http/fields.hpp>
#include <string>

#include "http/message.h"

namespace muster::http {

/// Lower-case names; the values of a repeated header are joined by commas (RFC 9110, 5.3).
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

/// `answer` is one of Beast's responses with a body in one string.
template <class Answer>
Response response_of(const Answer& answer) {
  return {.status = static_cast<int>(answer.result_int()),
          .content_type = std::string(answer[boost::beast::http::field::content_type]),
          .body = answer.body(),
          .headers = headers_of(answer)};
}

}  // namespace muster::http
