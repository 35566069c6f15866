#include "engine/slurm/rest_words.h"

#include <algorithm>

namespace muster::engine::slurm::rest {

namespace {

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](char letter) {
    return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - ('a' - 'A')) : letter;
  });
  return text;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& one) { return upper(one) == word; });
}

}  // namespace

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

std::string node_state_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const std::string capital = upper(word);
    if (capital == "NOT_RESPONDING") continue;
    text += (text.empty() ? "" : "+") + capital;
    const bool is_base = &word == &words.front();
    if (is_base && has(words, "NOT_RESPONDING")) text += "*";
  }
  return text;
}

}  // namespace muster::engine::slurm::rest
