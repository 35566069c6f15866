// Compares the request reader with a second implementation of RFC 9112, which was written from its
// grammar for this test. On many inputs, both must accept the same requests and end each request at
// the same byte.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "http/message_reader.h"

namespace muster::http {
namespace {

/// The content of a connection's bytes: where each request ends, and whether a fault follows the
/// last request.
struct Reading {
  std::vector<size_t> ends;
  bool fault = false;

  bool operator==(const Reading&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Reading& reading) {
  for (const size_t end : reading.ends) out << end << ' ';
  return out << (reading.fault ? "fault" : "more");
}

Reading read_by_muster(std::string_view bytes) {
  RequestReader reader({});
  Reading reading;
  RequestReader::Progress progress = reader.put(bytes);
  while (progress == RequestReader::Progress::kDone) {
    [[maybe_unused]] const ReadRequest request = reader.take();
    reading.ends.push_back(bytes.size() - reader.kept());
    progress = reader.put({});
  }
  reading.fault = progress == RequestReader::Progress::kFault;
  return reading;
}

// The grammar. Each function removes the part that it matched from the front of `rest`. If the
// bytes end too early for a decision, it throws.

struct NeedsMore {};
struct IsFaulty {};

bool is_token_letter(char letter) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 ||
         kOthers.find(letter) != std::string_view::npos;
}

bool is_field_letter(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return letter == '\t' || (code >= 0x20 && code != 0x7f);
}

std::string_view take_while(std::string_view& rest, bool (*holds)(char)) {
  size_t length = 0;
  while (length < rest.size() && holds(rest[length])) ++length;
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(length);
  return taken;
}

void take_literal(std::string_view& rest, std::string_view literal) {
  for (const char letter : literal) {
    if (rest.empty()) throw NeedsMore{};
    if (rest.front() != letter) throw IsFaulty{};
    rest.remove_prefix(1);
  }
}

struct Field {
  std::string name;
  std::string value;
};

std::string without_space_around(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return std::string(text);
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(letter));
  return lower;
}

/// Field lines and the empty line after them (5).
std::vector<Field> take_fields(std::string_view& rest) {
  std::vector<Field> fields;
  while (true) {
    if (rest.empty()) throw NeedsMore{};
    if (rest.front() == '\r') {
      take_literal(rest, "\r\n");
      return fields;
    }
    const std::string_view name = take_while(rest, is_token_letter);
    if (rest.empty()) throw NeedsMore{};
    if (name.empty()) throw IsFaulty{};
    take_literal(rest, ":");
    const std::string_view value = take_while(rest, is_field_letter);
    take_literal(rest, "\r\n");
    if (rest.starts_with(' ') || rest.starts_with('\t')) throw IsFaulty{};  // obs-fold, 5.2
    fields.push_back({in_lower_case(name), without_space_around(value)});
  }
}

std::vector<std::string> values_of(const std::vector<Field>& fields, std::string_view name) {
  std::vector<std::string> values;
  for (const Field& field : fields) {
    if (field.name == name) values.push_back(field.value);
  }
  return values;
}

void take_bytes(std::string_view& rest, uint64_t count) {
  if (rest.size() < count) throw NeedsMore{};
  rest.remove_prefix(count);
}

bool is_hexadecimal(char letter) {
  return std::isxdigit(static_cast<unsigned char>(letter)) != 0;
}

void take_space(std::string_view& rest) {
  take_while(rest, [](char letter) { return letter == ' ' || letter == '\t'; });
}

void take_token(std::string_view& rest) {
  const bool is_empty = take_while(rest, is_token_letter).empty();
  if (rest.empty()) throw NeedsMore{};
  if (is_empty) throw IsFaulty{};
}

void take_quoted(std::string_view& rest) {
  take_literal(rest, "\"");
  take_while(rest, [](char letter) { return letter != '"' && is_field_letter(letter); });
  take_literal(rest, "\"");
}

/// 7.1.1
void take_chunk_extensions(std::string_view& rest) {
  while (true) {
    take_space(rest);
    if (!rest.starts_with(';')) return;
    rest.remove_prefix(1);
    take_space(rest);
    take_token(rest);
    take_space(rest);
    if (!rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    take_space(rest);
    rest.starts_with('"') ? take_quoted(rest) : take_token(rest);
  }
}

/// 7.1
void take_chunks(std::string_view& rest) {
  while (true) {
    const std::string size(take_while(rest, is_hexadecimal));
    if (rest.empty()) throw NeedsMore{};
    if (size.empty() || size.size() > 8) throw IsFaulty{};
    const uint64_t count = std::stoull(size, nullptr, 16);
    take_chunk_extensions(rest);
    take_literal(rest, "\r\n");
    if (count == 0) break;
    take_bytes(rest, count);
    take_literal(rest, "\r\n");
  }
  take_fields(rest);
}

void take_request(std::string_view& rest) {
  const std::string_view method = take_while(rest, is_token_letter);
  if (method.empty()) {
    if (rest.empty()) throw NeedsMore{};
    throw IsFaulty{};
  }
  take_literal(rest, " /");
  take_while(rest, [](char letter) { return letter > ' ' && letter < 0x7f; });
  take_literal(rest, " HTTP/1.");
  if (rest.empty()) throw NeedsMore{};
  const bool current = rest.front() == '1';
  if (!current && rest.front() != '0') throw IsFaulty{};
  rest.remove_prefix(1);
  take_literal(rest, "\r\n");
  if (rest.starts_with(' ') || rest.starts_with('\t')) throw IsFaulty{};
  const std::vector<Field> fields = take_fields(rest);
  if (method.size() > 16) throw IsFaulty{};  // the server's own limit: 501, RFC 9110, 9.1

  const auto hosts = values_of(fields, "host");
  if (hosts.size() > 1 || (hosts.empty() && current)) throw IsFaulty{};
  if (!hosts.empty() && hosts.front().find_first_of(" \t\"/") != std::string::npos)
    throw IsFaulty{};
  const auto lengths = values_of(fields, "content-length");
  const auto codings = values_of(fields, "transfer-encoding");
  if (!codings.empty()) {
    const bool chunked = codings.size() == 1 && in_lower_case(codings.front()) == "chunked";
    if (!current || !chunked || !lengths.empty()) throw IsFaulty{};
    return take_chunks(rest);
  }
  if (lengths.empty()) return;
  const std::string& length = lengths.front();
  const bool is_number = !length.empty() && length.size() < 9 &&
                         length.find_first_not_of("0123456789") == std::string::npos;
  if (lengths.size() > 1 || !is_number) throw IsFaulty{};
  take_bytes(rest, std::stoull(length));
}

Reading read_by_the_rules(std::string_view bytes) {
  Reading reading;
  std::string_view rest = bytes;
  try {
    while (!rest.empty()) {
      take_request(rest);
      reading.ends.push_back(bytes.size() - rest.size());
    }
  } catch (NeedsMore) {
    reading.fault = false;  // the bytes end within a request
  } catch (IsFaulty) {
    reading.fault = true;
  }
  return reading;
}

// Inputs: requests composed of valid and invalid parts, and the same requests with one byte
// changed.

class Inputs {
 public:
  explicit Inputs(unsigned seed) : random_(seed) {}

  std::string next() {
    std::string bytes;
    for (size_t count = 1 + random_() % 3; count > 0; --count) bytes += request();
    if (random_() % 2 == 0) return bytes;
    constexpr std::string_view kLetters = " \t\r\n:;,0123aXx/\x01\x7f\"";
    const size_t place = random_() % bytes.size();
    const char letter = kLetters[random_() % kLetters.size()];
    switch (random_() % 3) {
      case 0:
        bytes[place] = letter;
        break;
      case 1:
        bytes.insert(place, 1, letter);
        break;
      default:
        bytes.erase(place, 1);
    }
    return bytes;
  }

 private:
  template <size_t Count>
  std::string one_of(const std::array<const char*, Count>& parts) {
    return parts[random_() % Count];
  }

  std::string request() {
    std::string bytes = one_of<8>(
        {"GET / HTTP/1.1\r\n", "POST /v1/jobs HTTP/1.1\r\n", "DELETE /v1/jobs/a HTTP/1.1\r\n",
         "HEAD / HTTP/1.1\r\n", "GET / HTTP/1.0\r\n", "PUT /x?y=z HTTP/1.1\r\n",
         "BASELINE-CONTROL / HTTP/1.1\r\n", "UPDATEREDIRECTREF / HTTP/1.1\r\n"});
    if (random_() % 16 != 0) bytes += "host: h\r\n";
    for (size_t count = random_() % 3; count > 0; --count) {
      bytes += one_of<10>({"x: y\r\n", "X-Long:  a b\t\r\n", "accept: */*\r\n", "x: a\r\n b\r\n",
                           "host: i\r\n", "expect: 100-continue\r\n", "via: 1.1 a\r\n",
                           "content-length: 0\r\n", "x:\r\n", "te: trailers\r\n"});
    }
    switch (random_() % 4) {
      case 0:
        return bytes + "\r\n";
      case 1:
        return bytes +
               one_of<6>({"content-length: 5\r\n\r\nhello", "content-length: 0\r\n\r\n",
                          "content-length: +5\r\n\r\nhello", "content-length: 5 5\r\n\r\nhello",
                          "content-length: 0x5\r\n\r\nhello", "Content-Length: 05\r\n\r\nhello"});
      case 2:
        return bytes + "transfer-encoding: chunked\r\n\r\n" +
               one_of<9>({"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\n", "5;a=b\r\nhello\r\n0\r\n\r\n",
                          "2\r\nhe\r\n3\r\nllo\r\n0\r\nx: y\r\n\r\n", "5\r\nhello0\r\n\r\n",
                          "+5\r\nhello\r\n0\r\n\r\n", "05\r\nhello\r\n00\r\n\r\n",
                          "fffffffffffffffff\r\nhello\r\n0\r\n\r\n", "0;x\r\n\r\n"});
      default:
        return bytes + "transfer-encoding: " +
               one_of<6>(
                   {"gzip", "identity", "xchunked", "chunked, chunked", "Chunked", "\"chunked\""}) +
               "\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    }
  }

  std::mt19937 random_;
};

TEST(RequestRules, AreKeptAsTheyAreWritten) {
  int accepted = 0;
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    const std::string bytes = Inputs(seed).next();
    const Reading rules = read_by_the_rules(bytes);
    Reading ours = read_by_muster(bytes);
    // The parser reads a head, a size line or trailers once their end has arrived.
    if (rules.fault && !ours.fault) ours = read_by_muster(bytes + "\r\n\r\n");
    ASSERT_EQ(ours, rules) << "seed " << seed << ":\n" << bytes;
    accepted += rules.ends.empty() ? 0 : 1;
  }
  EXPECT_GT(accepted, 2000);
}

}  // namespace
}  // namespace muster::http
