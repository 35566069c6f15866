#include "engine/slurm/rest_token.h"

#include <string.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/bytes.h"
#include "base/subprocess.h"
#include "engine/slurm/rest_words.h"
#include "engine/slurm/slurm_environment.h"

namespace muster::engine::slurm {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// A token is some hundred bytes; whoever signs with large keys has some thousand.
constexpr size_t kLongestToken = 16 << 10;
/// Before its end another is made.
constexpr std::chrono::seconds kMargin{60};
/// Of one that does not say when it ends: half of what Slurm gives by default.
constexpr std::chrono::seconds kUnknownLife{900};

void wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

bool is_token_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '-' || letter == '_' || letter == '.' ||
         letter == '=' || letter == '+' || letter == '/';
}

std::string_view without_blanks_at_the_end(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

/// Without padding, and with - and _.
std::optional<std::string> from_base64_for_urls(std::string text) {
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return base::from_base64(text);
}

}  // namespace

Result<std::string> token_of(std::string_view printed) {
  constexpr std::string_view kName = "SLURM_JWT=";
  const Error error{.code = ErrorCode::kInternal,
                    .what = "the token command prints no token",
                    .advice =
                        "it has to print \"SLURM_JWT=...\", as `scontrol token` does, or the "
                        "token alone"};
  printed = without_blanks_at_the_end(printed);
  if (const size_t at = printed.rfind(kName); at != std::string_view::npos) {
    printed.remove_prefix(at + kName.size());
  }
  if (printed.empty() || printed.size() >= kLongestToken) return error;
  if (!std::all_of(printed.begin(), printed.end(), is_token_letter)) return error;
  return std::string(printed);
}

std::optional<base::Time> end_of_token(std::string_view token) {
  const size_t first = token.find('.');
  if (first == std::string_view::npos) return std::nullopt;
  const size_t second = token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto claims =
      from_base64_for_urls(std::string(token.substr(first + 1, second - first - 1)));
  if (!claims) return std::nullopt;
  const auto read = nlohmann::json::parse(*claims, nullptr, false);
  if (!read.is_object() || !read.contains("exp") || !read["exp"].is_number()) return std::nullopt;
  const double seconds = read["exp"].get<double>();
  constexpr double kLatest = 9e9;  // what fits into the nanoseconds of a Time
  if (!(seconds >= 0 && seconds <= kLatest)) return std::nullopt;
  return base::Time(std::chrono::seconds(static_cast<int64_t>(seconds)));
}

RestToken::RestToken(base::EventLoop& loop, std::vector<std::string> command,
                     std::chrono::milliseconds patience)
    : command_(std::move(command)), patience_(patience), programs_(loop, 1) {}

RestToken::~RestToken() {
  wipe(token_);
}

void RestToken::get(Then then) {
  if (!token_.empty() && std::chrono::system_clock::now() < good_until_) return then(token_);
  if (command_.empty()) {
    return then(Error{.code = ErrorCode::kInvalid,
                      .what = "slurmrestd wants a token, and no command is known that prints one"});
  }
  waiting_.push_back(std::move(then));
  if (waiting_.size() > 1) return;
  programs_.run({.argv = command_,
                 .environment = environment_for_asking(base::current_environment()),
                 .input = {},
                 .patience = patience_},
                [this](Result<ProgramEnd> end) { has_ended(std::move(end)); });
}

void RestToken::drop() {
  wipe(token_);
}

std::chrono::nanoseconds RestToken::age() const {
  return std::chrono::steady_clock::now() - made_;
}

void RestToken::has_ended(Result<ProgramEnd> end) {
  auto made = made_by(std::move(end));
  if (!made) return answer(std::move(made).error());
  wipe(token_);
  token_ = *std::move(made);
  made_ = std::chrono::steady_clock::now();
  const auto now = std::chrono::system_clock::now();
  const base::Time ends = end_of_token(token_).value_or(now + kUnknownLife);
  // One that does not last much longer than the margin is good for half of its life.
  good_until_ = ends - std::min<std::chrono::nanoseconds>(kMargin, (ends - now) / 2);
  answer(token_);
}

Result<std::string> RestToken::made_by(Result<ProgramEnd> end) const {
  const auto failed = [this](const std::string& why) {
    return Error{
        .code = ErrorCode::kUnavailable,
        .what = "no token for slurmrestd can be had from '" + command_.front() + "': " + why,
        .advice = "run it by hand, as the user of the server"};
  };
  if (!end) return failed(end.error().what);
  auto token = token_of(end->output);
  wipe(end->output);
  if (end->was_late)
    return failed("it takes longer than " + std::to_string(patience_.count()) + " ms");
  if (end->code == 0) return token;
  constexpr size_t kLongestSaid = 500;
  const std::string said = rest::one_line(without_blanks_at_the_end(end->errors), kLongestSaid);
  return failed(said.empty() ? "it ends with code " + std::to_string(end->code) : said);
}

/// Who is told may ask again, or end this.
void RestToken::answer(const Result<std::string>& result) {
  const std::weak_ptr<bool> alive = alive_;
  const Result<std::string> kept = result;
  for (const auto& then : std::exchange(waiting_, {})) {
    if (!alive.expired()) then(kept);
  }
}

}  // namespace muster::engine::slurm
