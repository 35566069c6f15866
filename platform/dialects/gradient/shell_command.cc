#include "dialects/gradient/shell_command.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace muster::dialects::gradient {

namespace {

constexpr std::string_view kSpace = " \t\n";
// Left to the shell: what it expands, redirects, or takes for the end of a command.
constexpr std::string_view kSyntax = "|&;<>()$`\\*?[]#~!{}\n";
constexpr std::string_view kSyntaxInQuotes = "$`\\";

bool is_launcher(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  constexpr std::array<std::string_view, 3> kNames{"mpirun", "mpiexec", "orterun"};
  // Distributions have them as mpirun.openmpi, mpiexec.hydra.
  return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) {
    return name == known || name.starts_with(std::string(known) + ".");
  });
}

}  // namespace

std::vector<std::string> shell_command(const std::string& text) {
  return {"sh", "-c", text};
}

std::vector<std::string> master_command(const std::string& text) {
  auto words = plain_words(text);
  if (words && !words->empty() && is_launcher(words->front())) return *std::move(words);
  return shell_command(text);
}

std::optional<std::vector<std::string>> plain_words(std::string_view text) {
  text = base::trimmed(text, kSpace);
  std::vector<std::string> words;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == ' ' || letter == '\t') {
      in_word = false;
      continue;
    }
    if (kSyntax.find(letter) != std::string_view::npos) return std::nullopt;
    if (!in_word) words.emplace_back();
    in_word = true;
    if (letter != '\'' && letter != '"') {
      words.back() += letter;
      continue;
    }
    const size_t end = text.find(letter, i + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view quoted = text.substr(i + 1, end - i - 1);
    if (letter == '"' && quoted.find_first_of(kSyntaxInQuotes) != std::string_view::npos) {
      return std::nullopt;
    }
    words.back() += quoted;
    i = end;
  }
  return words;
}

bool is_endless_sleep(std::string_view text) {
  const auto words = plain_words(text);
  return words && *words == std::vector<std::string>{"sleep", "infinity"};
}

}  // namespace muster::dialects::gradient
