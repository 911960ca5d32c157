# What Doxygen is given to read instead of the headers.

# `Errors:` and the like begin a paragraph of their own.
s,^( */// )(Signature|Errors|Executor|Cancellation|Thread safety|Exceptions): ,\1@paragraph{\2} ,

# Specialisations of other libraries' templates, whose namespaces it does not know.
s,^struct (boost|fmt|std)::[a-z_:]+,struct specialization,

# The bases of wheel_watchdog and heartbeat, and of all timers, whose members are theirs.
s,^namespace asio_wheel::detail \{,namespace asio_wheel {,
s,public detail::keep_alive_base<detail::,public keep_alive_base<,
s,public detail::timer_(object|by)<(detail::)?,public timer_object<,

# The groups of enums. Doxygen 1.9.8 does not find an enum that reference.dox names.
s,^enum class clock_source ,/// @ingroup wheels\n&,
s,^enum class wheel_errc ,/// @ingroup waiting\n&,
s,^enum class missed_tick ,/// @ingroup repeating\n&,
s,^enum class heartbeat_event ,/// @ingroup alive\n&,
