#include "cli/command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <utility>

namespace strata::cli {
namespace {

/// CLI11 complains about what is missing before what is superfluous; a misspelt word is both, and
/// the word itself helps more.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool missing = code == CLI::ExitCodes::RequiredError;
  if (!missing && code != CLI::ExitCodes::ExtrasError) return error.what();
  const CLI::App* verb = &app;
  std::string command = app.get_name();
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    command += " " + verb->get_name();
  }
  std::vector<std::string> choices;
  for (const CLI::App* choice : verb->get_subcommands([](const CLI::App*) { return true; }))
    choices.push_back(choice->get_name());
  const std::vector<std::string> words = app.remaining(true);
  if (!words.empty() && (choices.empty() || words[0].rfind('-', 0) == 0))
    return fmt::format("'{}' is not expected by {}: see {} --help", words[0], command, command);
  if (!words.empty())
    return fmt::format("'{}' is not one of {}", words[0], fmt::join(choices, ", "));
  if (!choices.empty())
    return fmt::format("{} needs one of {}: see {} --help", command, fmt::join(choices, ", "),
                       command);
  return fmt::format("{}: see {} --help", error.what(), command);
}

}  // namespace

Check::Check(std::shared_ptr<const CLI::Validator> validator) : validator_(std::move(validator)) {}
Check::Check(std::function<std::string(std::string&)> complaint, const std::string& description)
    : Check(std::make_shared<const CLI::Validator>(std::move(complaint), description)) {}
std::string Check::operator()(std::string& text) const { return (*validator_)(text); }

Check in_range(int lower, int upper) {
  return Check(std::make_shared<const CLI::Validator>(CLI::Range(lower, upper)));
}
Check in_range(double lower, double upper) {
  return Check(std::make_shared<const CLI::Validator>(CLI::Range(lower, upper)));
}
Check one_of(std::initializer_list<const char*> values) {
  return Check(std::make_shared<const CLI::Validator>(
      CLI::IsMember(std::vector<std::string>(values.begin(), values.end()))));
}
Check one_of(std::initializer_list<double> values) {
  return Check(std::make_shared<const CLI::Validator>(CLI::IsMember(std::vector<double>(values))));
}

void refuse_value(const std::string& option, const std::string& why) {
  throw CLI::ValidationError(option, why);
}

Option Option::required(bool value) {
  option_->required(value);
  return *this;
}
Option Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}
Option Option::default_str(const std::string& text) {
  option_->default_str(text);
  return *this;
}
Option Option::description(const std::string& text) {
  option_->description(text);
  return *this;
}
Option Option::check(const Check& check) {
  option_->check(*check.validator_);
  return *this;
}
Option Option::transform(const Check& check) {
  option_->transform(*check.validator_);
  return *this;
}
Option Option::needs(const Option& other) {
  option_->needs(other.option_);
  return *this;
}
Option Option::excludes(const Option& other) {
  option_->excludes(other.option_);
  return *this;
}
bool Option::given() const { return option_->count() > 0; }
std::string Option::name() const { return option_->get_name(); }

Command Command::add_subcommand(const std::string& name, const std::string& help) {
  return Command(*app_->add_subcommand(name, help));
}
void Command::require_subcommand() { app_->require_subcommand(1); }
void Command::footer(const std::string& text) { app_->footer(text); }
void Command::callback(const std::function<void()>& action) { app_->callback(action); }

template <class T>
Option Command::add_option(const std::string& name, T& value, const std::string& help) {
  return Option(*app_->add_option(name, value, help));
}
template Option Command::add_option(const std::string&, std::string&, const std::string&);
template Option Command::add_option(const std::string&, int&, const std::string&);
template Option Command::add_option(const std::string&, std::int64_t&, const std::string&);
template Option Command::add_option(const std::string&, std::uint64_t&, const std::string&);
template Option Command::add_option(const std::string&, double&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<std::string>&,
                                    const std::string&);
template Option Command::add_option(const std::string&, std::optional<int>&, const std::string&);
template Option Command::add_option(const std::string&, std::optional<double>&, const std::string&);

template <class T>
Option Command::add_list(const std::string& name, std::vector<T>& values, const std::string& help) {
  return Option(*app_->add_option(name, values, help)->delimiter(',')->allow_extra_args(false));
}
template Option Command::add_list(const std::string&, std::vector<std::string>&,
                                  const std::string&);
template Option Command::add_list(const std::string&, std::vector<int>&, const std::string&);
template Option Command::add_list(const std::string&, std::vector<std::int64_t>&,
                                  const std::string&);
template Option Command::add_list(const std::string&, std::vector<double>&, const std::string&);

Option Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(*app_->add_flag(name, value, help));
}
Option Command::add_option_function(const std::string& name,
                                    const std::function<void(const std::string&)>& read,
                                    const std::string& help) {
  return Option(*app_->add_option_function<std::string>(name, read, help));
}
Option Command::get_option(const std::string& name) const {
  return Option(*app_->get_option(name));
}

CommandLine::CommandLine(const std::string& name, const std::string& help,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(help)) {
  app_->name(name);
  app_->set_version_flag("--version", version);
}
CommandLine::~CommandLine() = default;

Command CommandLine::program() const { return Command(*app_); }

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app_->exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app_->exit(version);
  } catch (const CLI::ParseError& error) {
    throw UsageError(usage_message(*app_, error));
  }
  return std::nullopt;
}

}  // namespace strata::cli
