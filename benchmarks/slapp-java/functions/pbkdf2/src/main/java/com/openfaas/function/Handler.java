package com.openfaas.function;

import com.openfaas.model.AbstractHandler;
import com.openfaas.model.IRequest;
import com.openfaas.model.IResponse;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.HexFormat;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;

/** CPU: derives a key from the input. */
public class Handler extends AbstractHandler {
    private static final byte[] SALT = "slapp".getBytes(StandardCharsets.US_ASCII);
    private static final int KEY_BITS = 256;

    /** Derives a key from the first stage's outputs in `sizes.pbkdf2.iterations` iterations. */
    @Override
    public IResponse Handle(IRequest request) {
        String body = request.getBody();
        int iterations = Slapp.size(Slapp.sizes(body), "pbkdf2", "iterations", 50_000);
        try {
            PBEKeySpec given = new PBEKeySpec(body.toCharArray(), SALT, iterations, KEY_BITS);
            byte[] key = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(given).getEncoded();
            return Slapp.answer(
                "function", "pbkdf2", "iterations", iterations, "key", HexFormat.of().formatHex(key)
            );
        } catch (GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }
}
