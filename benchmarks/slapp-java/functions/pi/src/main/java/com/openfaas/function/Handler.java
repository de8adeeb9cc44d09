package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** CPU: digits of pi by Machin's series. */
public class Handler extends AbstractHandler {
    private static final int GUARD_DIGITS = 10;
    private static final int WINDOW_DIGITS = 20;

    /** Computes `sizes.pi.digits` digits and answers 20 of them, at a place the input decides. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        int digits = Slapp.size(Slapp.sizes(body), "pi", "digits", 4500);
        byte[] hash = Slapp.sha256(body.getBytes(StandardCharsets.UTF_8));
        BigInteger seed = new BigInteger(1, Arrays.copyOf(hash, Long.BYTES));
        int after = seed.mod(BigInteger.valueOf(Math.max(1, digits - WINDOW_DIGITS))).intValue();
        BigInteger window = piDigits(digits).divide(BigInteger.TEN.pow(after)).mod(BigInteger.TEN.pow(WINDOW_DIGITS));
        return Slapp.answer(
            "function", "pi",
            "digits", digits,
            "digits_after_window", after,
            "window", String.format("%0" + WINDOW_DIGITS + "d", window)
        );
    }

    /** pi * 10**digits, rounded down: pi/4 = 4 arctan(1/5) - arctan(1/239). */
    private static BigInteger piDigits(int digits) {
        BigInteger one = BigInteger.TEN.pow(GUARD_DIGITS + digits);
        BigInteger quarter = arctanInverse(5, one).shiftLeft(2).subtract(arctanInverse(239, one));
        return quarter.shiftLeft(2).divide(BigInteger.TEN.pow(GUARD_DIGITS));
    }

    /** arctan(1/x) as a multiple of 1/one, by its power series. */
    private static BigInteger arctanInverse(long x, BigInteger one) {
        BigInteger square = BigInteger.valueOf(x * x);
        BigInteger power = one.divide(BigInteger.valueOf(x));
        BigInteger total = power;
        for (long divisor = 3; power.signum() != 0; divisor += 2) {
            power = power.divide(square);
            BigInteger term = power.divide(BigInteger.valueOf(divisor));
            total = divisor % 4 == 3 ? total.subtract(term) : total.add(term);
        }
        return total;
    }
}
