#include "engine/slurm/rest_words.h"

#include <algorithm>

#include "base/text.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm::rest {

namespace {

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& one) { return upper_case(one) == word; });
}

}  // namespace

std::string one_line(std::string_view said, size_t longest) {
  std::string text = base::as_utf8(said);
  std::replace_if(
      text.begin(), text.end(),
      [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return base::shortened(text, longest);
}

std::string node_state_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const std::string capital = upper_case(word);
    if (capital == "NOT_RESPONDING") continue;
    text += (text.empty() ? "" : "+") + capital;
    const bool is_base = &word == &words.front();
    if (is_base && has(words, "NOT_RESPONDING")) text += "*";
  }
  return text;
}

}  // namespace muster::engine::slurm::rest
