#include "dialects/runai/words.h"

#include <optional>
#include <string_view>
#include <utility>

#include "dialects/runai/command_tree.h"

namespace muster::dialects::runai {

namespace {

bool is_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-';
}

bool is_short(std::string_view word) {
  return is_flag(word) && word[1] != '-';
}

/// The text after the flag's name in the same word: "=1", "1", or nothing.
std::optional<std::string> value_in(const std::string& word) {
  if (is_short(word)) {
    if (word.size() == 2) return std::nullopt;
    return word.substr(word[2] == '=' ? 3 : 2);
  }
  const size_t equals = word.find('=');
  if (equals == std::string::npos) return std::nullopt;
  return word.substr(equals + 1);
}

class Rewriter {
 public:
  explicit Rewriter(Words words) : words_(std::move(words)), root_(command_tree()), at_(&root_) {}

  Words rewritten() {
    while (next_ < words_.size()) {
      const std::string word = words_[next_++];
      if (word == "--") {
        result_.push_back(word);
        take_rest();
      } else if (is_flag(word)) {
        take_flag(word);
      } else {
        take_name(word);
      }
    }
    return std::move(result_);
  }

 private:
  void take_rest() {
    result_.insert(result_.end(), words_.begin() + static_cast<std::ptrdiff_t>(next_),
                   words_.end());
    next_ = words_.size();
  }

  void take_name(const std::string& word) {
    // A command of the tree has one alias, but submit-mpi has two.
    const std::string name = at_ == &root_ && word == "mj" ? "submit-mpi" : word;
    if (const cli::Command* child = at_->find_command(name)) {
      at_ = child;
      result_.push_back(name);
      return;
    }
    if (at_->name == "exec" && has_name_) {
      result_.emplace_back("--");
      --next_;
      return take_rest();
    }
    has_name_ = true;
    result_.push_back(word);
  }

  void take_flag(const std::string& word) {
    const std::string name = is_short(word) ? word.substr(0, 2) : word.substr(0, word.find('='));
    const cli::Flag* flag = at_->find_flag(name);
    if (flag == nullptr) {
      result_.push_back(word);
    } else if (flag->is_switch()) {
      take_switch(word, *flag);
    } else if (auto value = value_in(word)) {
      put(*flag, *std::move(value));
    } else if (next_ < words_.size() && takes_next(*flag)) {
      put(*flag, words_[next_++]);
    } else {
      result_.push_back(flag->name);
    }
  }

  void take_switch(const std::string& word, const cli::Flag& flag) {
    const bool has_value =
        is_short(word) ? word.size() > 2 && word[2] == '=' : word.find('=') != std::string::npos;
    // "-it" stands for two switches.
    if (!has_value) return result_.push_back(word);
    result_.push_back(flag.name + "=" + *value_in(word));
  }

  bool takes_next(const cli::Flag& flag) const {
    if (words_[next_] == "--") return false;
    return !flag.value_optional || !is_flag(words_[next_]);
  }

  void put(const cli::Flag& flag, std::string value) {
    // With "--flag=", the parser would use the next word as the value.
    if (value.empty()) {
      result_.push_back(flag.name);
      result_.push_back(std::move(value));
    } else {
      result_.push_back(flag.name + "=" + value);
    }
  }

  Words words_;
  cli::Command root_;
  const cli::Command* at_;
  size_t next_ = 0;
  bool has_name_ = false;  ///< a word that is neither a command nor a flag was read
  Words result_;
};

}  // namespace

std::vector<std::string> plain_words(std::vector<std::string> words) {
  return Rewriter(std::move(words)).rewritten();
}

}  // namespace muster::dialects::runai
