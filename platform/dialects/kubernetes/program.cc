#include "dialects/kubernetes/program.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace muster::dialects::kubernetes {

namespace {

void append_text(Expression& expression, std::string_view text) {
  if (text.empty()) return;
  if (expression.empty() || expression.back().is_variable) {
    expression.push_back({.is_variable = false, .text = ""});
  }
  expression.back().text += text;
}

void append(Expression& expression, const Expression& more) {
  for (const Piece& piece : more) {
    if (piece.is_variable) {
      expression.push_back(piece);
    } else {
      append_text(expression, piece.text);
    }
  }
}

/// In double quotes for a POSIX shell.
std::string in_double_quotes(const Expression& expression) {
  std::string quoted = "\"";
  for (const Piece& piece : expression) {
    if (piece.is_variable) {
      quoted += "${" + piece.text + "}";
      continue;
    }
    for (const char c : piece.text) {
      if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace

std::string plain_text(const Expression& expression) {
  std::string text;
  for (const Piece& piece : expression) text += piece.text;
  return text;
}

bool is_plain(const Expression& expression) {
  return std::none_of(expression.begin(), expression.end(),
                      [](const Piece& piece) { return piece.is_variable; });
}

size_t size_of(const Expression& expression) {
  size_t size = 0;
  for (const Piece& piece : expression) size += piece.text.size() + 1;
  return size;
}

std::optional<Expression> expand(std::string_view text, const Lookup& lookup) {
  Expression result;
  size_t size = text.size();
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    append_text(result, text.substr(0, dollar));
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar);
    if (text.starts_with("$$")) {
      append_text(result, "$");
      text.remove_prefix(2);
      continue;
    }
    const size_t end = text.starts_with("$(") ? text.find(')') : std::string_view::npos;
    if (end == std::string_view::npos) {
      append_text(result, "$");
      text.remove_prefix(1);
      continue;
    }
    const auto value = lookup(std::string(text.substr(2, end - 2)));
    if (value) {
      size += size_of(*value);
      if (size > kMostExpanded) return std::nullopt;
      append(result, *value);
    } else {
      append_text(result, text.substr(0, end + 1));
    }
    text.remove_prefix(end + 1);
  }
  return result;
}

namespace {

class ProgramWriting {
 public:
  ProgramWriting(const Pod& pod, const std::set<std::string>& known_later, Findings& findings)
      : pod_(pod), known_later_(known_later), findings_(findings) {}

  Program write() && {
    for (const Variable& variable : pod_.environment) set(variable);
    const std::vector<Expression> command = expanded(pod_.command);
    const std::vector<Expression> arguments = expanded(pod_.arguments);
    const bool needs_shell = !exports_.empty() || !are_plain(command) || !are_plain(arguments);
    if (needs_shell && command.empty()) {
      report_missing_command();
      return std::move(program_);
    }
    if (needs_shell) {
      write_shell(command, arguments);
    } else {
      for (const Expression& word : command) program_.command.push_back(plain_text(word));
      for (const Expression& word : arguments) program_.arguments.push_back(plain_text(word));
    }
    return std::move(program_);
  }

 private:
  void set(const Variable& variable) {
    if (!variable.secret.empty()) {
      program_.secrets.push_back({.name = variable.secret, .variable = variable.name, .file = ""});
    } else if (is_plain(variable.value)) {
      program_.environment[variable.name] = plain_text(variable.value);
    } else {
      exports_ += variable.name + "=" + in_double_quotes(variable.value) + "; export " +
                  variable.name + "; ";
      if (later_.path.empty()) later_ = variable.place;
    }
  }

  std::optional<Expression> value_of(const std::string& name) const {
    const auto& all = pod_.environment;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Variable& one) { return one.name == name; });
    if (found != all.end() && found->secret.empty() && is_plain(found->value)) return found->value;
    if (found == all.end() && !known_later_.contains(name)) return std::nullopt;
    return Expression{{.is_variable = true, .text = name}};
  }

  std::vector<Expression> expanded(const std::vector<Word>& words) {
    std::vector<Expression> result;
    for (const Word& word : words) {
      auto words_value =
          expand(word.text, [this](const std::string& name) { return value_of(name); });
      if (!words_value) {
        findings_.faults.push_back({.field = word.place.path,
                                    .what = "is longer than 256 KiB with its variables",
                                    .line = word.place.line});
        continue;
      }
      result.push_back(*std::move(words_value));
      if (!is_plain(result.back()) && later_.path.empty()) later_ = word.place;
    }
    return result;
  }

  static bool are_plain(const std::vector<Expression>& words) {
    return std::all_of(words.begin(), words.end(), is_plain);
  }

  void report_missing_command() {
    findings_.faults.push_back(
        {.field = later_.path,
         .what = "has a value that exists only in the running task, so a shell must set it before "
                 "the command; give the container a command",
         .line = later_.line});
  }

  /// Without variables in the words, they stay words of the command, which the listings show.
  void write_shell(const std::vector<Expression>& command,
                   const std::vector<Expression>& arguments) {
    program_.command = {"sh", "-c"};
    if (are_plain(command) && are_plain(arguments)) {
      program_.command.push_back(exports_ + "exec \"$@\"");
      program_.command.emplace_back("sh");
      for (const Expression& word : command) program_.command.push_back(plain_text(word));
      for (const Expression& word : arguments) program_.arguments.push_back(plain_text(word));
      return;
    }
    std::string script = exports_ + "exec";
    for (const auto* words : {&command, &arguments}) {
      for (const Expression& word : *words) {
        script += " " + (is_plain(word) ? base::shell_joined({plain_text(word)})
                                        : in_double_quotes(word));
      }
    }
    program_.command.push_back(std::move(script));
  }

  const Pod& pod_;
  const std::set<std::string>& known_later_;
  Findings& findings_;
  Program program_;
  std::string exports_;
  Place later_;  ///< the first value that exists only in the running task
};

}  // namespace

Program program_of(const Pod& pod, const std::set<std::string>& known_later, Findings& findings) {
  return ProgramWriting(pod, known_later, findings).write();
}

}  // namespace muster::dialects::kubernetes
