// An Error as bytes: u32 code, i32 rank, text host, text message, text advice (result.h). Texts are
// cut off at 16,000 bytes.
#pragma once

#include "muster/collective/result.h"
#include "transport/bytes.h"

namespace muster::collective {

inline void write_error(ByteWriter& writer, const Error& error) {
  constexpr std::size_t kLongestText = 16'000;
  writer.number(static_cast<std::uint32_t>(error.code))
      .number(static_cast<std::int32_t>(error.rank))
      .text(std::string_view(error.host).substr(0, kLongestText))
      .text(std::string_view(error.message).substr(0, kLongestText))
      .text(std::string_view(error.advice).substr(0, kLongestText));
}

inline Error read_error(ByteReader& reader) {
  Error error;
  error.code = static_cast<ErrorCode>(reader.number<std::uint32_t>());
  error.rank = reader.number<std::int32_t>();
  error.host = reader.text();
  error.message = reader.text();
  error.advice = reader.text();
  return error;
}

}  // namespace muster::collective
